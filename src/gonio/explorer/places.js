// Labels that can be searched for, and the neighbourhood of each (places.py): its Gram matrix from chords and lengths,
// seen in the plane of inputs through 0 that the label and two far neighbours span.
function places(d, words) {
  const lower = d.names.map((x) => x.toLowerCase()), size = d.size, pairs = size * (size - 1) / 2, made = new Map();
  const order = d.rows === null ? null : new Map(d.rows.map((row, k) => [row, k])), total = d.chords.length / 2;
  const floats = (x) => new DataView(x.buffer, x.byteOffset), float = (x, i) => floats(x).getFloat32(4 * i, true);
  const at = (row) => (order === null ? row : order.get(row)), has = (row) => at(row) !== undefined && float(d.lengths, row) > 0;
  const pair = (i, j) => (i > j ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i);

  function scene(row) {
    if (made.has(row)) return made.get(row);
    const k = at(row), which = [row, ...d.near.slice(k * (size - 1), (k + 1) * (size - 1))], length = which.map((i) => float(d.lengths, i));
    const chord = (i, j) => { const p = k * pairs + pair(i, j); return i === j ? 0 : (d.chords[p] + 256 * d.chords[total + p]) / 65535; };
    const square = which.map((_, i) => which.map((_, j) => (length[i] - length[j]) ** 2 + 4 * length[i] * length[j] * chord(i, j) ** 2));  // of distances
    const G = which.map((_, i) => which.map((_, j) => length[i] * length[j] * (1 - 2 * chord(i, j) ** 2)));
    const best = (of) => of.reduce((m, x, i) => (x > of[m] ? i : m), 0);
    const f = best(square[0]), far = Math.sqrt(square[0][f]) || 1, along = which.map((_, j) => (square[0][j] + square[0][f] - square[j][f]) / 2 / far);
    const rest = which.map((_, j) => Math.max(0, square[0][j] - along[j] ** 2)), g = best(rest), off = rest[g] > 1e-9 * far * far ? Math.sqrt(rest[g]) : Infinity;
    const shadow = (p) => { const x = (p[f] - p[0]) / far; return [x, (p[g] - p[0] - along[g] * x) / off]; };  // from the products with every row
    const W = which.map((_, i) => shadow(G[i])), mean = [0, 1].map((c) => W.reduce((t, w) => t + w[c], 0) / size);
    const spread = Math.max(...W.map((w) => Math.max(Math.abs(w[0] - mean[0]), Math.abs(w[1] - mean[1])))) || 1, s = d.states;
    const C = d.alike === null ? undefined : which.map((_, i) => which.map((_, j) => { const v = i === j ? 254 : d.alike[k * pairs + pair(i, j)]; return v === 255 ? NaN : v / 127 - 1; }));
    const dots = s === null ? null : Array.from({ length: s.count }, (_, t) => shadow(which.map((i) => s.unit * half(floats(s.data).getUint16(2 * (i * s.count + t), true)))));
    const bias = d.bias === null ? null : which.map((i) => float(d.bias, i)), out = (x) => Math.max(Math.abs(x[0]), Math.abs(x[1]));
    let reach = 6 / spread;
    if (dots) reach = Math.max(reach / 2, 1.1 * dots.map(out).sort((a, b) => a - b)[Math.floor(0.9 * dots.length)]);  // most of the states
    else if (bias && words.link === "sigmoid") reach = Math.max(reach, 1.5 * Math.max(...[0, f, g].map((i) => Math.abs(bias[i]) / (Math.hypot(...W[i]) || 1))));
    const other = which.findIndex((_, j) => j > 0 && chord(0, j) > 0), labels = which.map((i) => d.names[i]);
    const scene_ = {
      of: labels[0], row, W, G, C, labels, softcap: words.softcap, alike: words.alike, slice: true, pair: [0, Math.max(1, other)],
      bias, dots, reach, note: words.note,
      story: `${labels[0]} and its ${size - 1} nearest labels by cosine, in a plane of inputs through 0; ${words.link === "sigmoid" ? "label sets" : "regions and probabilities"} are among these.`,
    };
    made.set(row, scene_);
    return scene_;
  }
  const index = (typed) => {  // a label as typed: its very name (with a space where tokenizers write Ġ or ▁), #12, or the only one that reads so but for capitals
    const i = [typed, typed.replace(/^ /, "Ġ"), typed.replace(/^ /, "▁")].map((x) => d.names.indexOf(x)).find((k) => k >= 0) ?? -1, m = /^#(\d+)$/.exec(typed);
    if (i >= 0 || (m && Number(m[1]) < d.names.length)) return i >= 0 ? i : Number(m[1]);
    const q = typed.toLowerCase(), k = lower.indexOf(q);
    return k >= 0 && lower.lastIndexOf(q) === k ? k : -1;
  };
  function offer(typed, most = 20) {  // rows whose names begin so, then rows whose names hold it
    const q = typed.toLowerCase(), out = [];
    for (const fits of [(x) => x.startsWith(q), (x) => x.includes(q)]) for (let i = 0; i < lower.length && out.length < most; i++) if (fits(lower[i]) && !out.includes(i)) out.push(i);
    return out;
  }
  return { scene, has, index, zero: (row) => float(d.lengths, row) === 0, offer, name: (i) => d.names[i], typed: (i) => (d.names.indexOf(d.names[i]) === i && d.names[i] !== "" ? d.names[i] : `#${i}`), count: d.rows === null ? d.names.length : d.rows.length, all: d.names.length };
}
