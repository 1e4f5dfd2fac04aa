"use strict";
// What a page carries (packed_page_data.py): JSON and numbers as bytes, deflated, in 85 letters.
function half(h) {  // IEEE float16 to a number
  const s = h & 0x8000 ? -1 : 1, e = (h >> 10) & 31, f = h & 1023;
  return e === 0 ? s * f * 2 ** -24 : s * (1 + f / 1024) * 2 ** (e - 15);
}
async function unpack(text) {
  const [length, body] = text.trim().split(" "), LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=:?@^_`{|}~";
  const digit = new Uint8Array(128), small = new Uint8Array(body.length / 5 * 4), out = new DataView(small.buffer);
  for (let k = 0; k < 85; k++) digit[LETTERS.charCodeAt(k)] = k;
  for (let k = 0; k < body.length / 5; k++) { let v = 0; for (let j = 0; j < 5; j++) v = v * 85 + digit[body.charCodeAt(5 * k + j)]; out.setUint32(4 * k, v); }
  const stream = new Blob([small.subarray(0, Number(length))]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer()), after = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, after)));
  const number = (at, count, width, k) => { let v = 0; for (let j = width - 1; j >= 0; j--) v = v * 256 + bytes[after + at + j * count + k]; return v; };
  const read = (x) => {
    if (x === null || typeof x !== "object") return x;
    if (x.whole !== undefined) { const none = 256 ** x.whole - 1; return Array.from({ length: x.count }, (_, k) => { const v = number(x.at, x.count, x.whole, k); return v === none ? null : v; }); }
    if (x.raw !== undefined) return bytes.slice(after + x.at, after + x.at + x.raw);
    if (x.decimal !== undefined) {
      const n = x.decimal, made = Array.from({ length: n }, (_, k) => {
        const d = (number(x.at, n, 2, k) << 16) >> 16, p = (bytes[after + x.at + 2 * n + k] << 24) >> 24;
        return d === -32768 ? null : p < 0 ? d / 10 ** -p : d * 10 ** p;
      });
      for (const [k, v] of x.as_is ?? []) made[k] = v;
      return made;
    }
    if (Array.isArray(x)) return x.map(read);
    return Object.fromEntries(Object.entries(x).map(([k, v]) => [k, read(v)]));
  };
  return read(data);
}
