// The pair box: what is stored of two labels, what equivalent models reach, what to use instead.
(() => {
  const $ = (id) => document.getElementById(id);
  if (!$("pair-a")) return;
  function rowsOf(t) {
    if (!t) return null;
    const bits = new DataView(t.data.buffer);
    return (i) => Float64Array.from({ length: t.width }, (_, k) => half(bits.getUint16(2 * (i * t.width + k), true)));
  }
  function cosine(u, v) {
    let uv = 0, uu = 0, vv = 0;
    for (let k = 0; k < u.length; k++) { uv += u[k] * v[k]; uu += u[k] * u[k]; vv += v[k] * v[k]; }
    return uu && vv ? uv / Math.sqrt(uu * vv) : null;
  }
  gonio.pair = (a, b) => {  // {cosine, instead, interval, words, from} or null where nothing is stored
    const d = gonio.data, p = d.pairs.find((x) => (x.rows[0] === a && x.rows[1] === b) || (x.rows[0] === b && x.rows[1] === a));
    if (p) return { ...p, from: "stored" };
    if (gonio.rows) return { cosine: cosine(gonio.rows(a), gonio.rows(b)), instead: gonio.meant ? cosine(gonio.meant(a), gonio.meant(b)) : null, interval: null, from: "half" };
    for (const [i, j] of [[a, b], [b, a]]) {
      const n = gonio.neighbours(i).find((x) => x.j === j);
      if (n) return { cosine: n.cosine, instead: n.value, interval: null, from: "near" };
    }
    return null;
  };
  const quote = (x) => (/^[\w./:+,-]+$/.test(x) && !x.startsWith("-") ? x : `'${x.replaceAll("'", "'\\''")}'`);
  const typed = (i) => (gonio.data.once[i] && gonio.data.named && /^[^\x00-\x1f\x7f-\x9f]{1,200}$/.test(gonio.data.names[i]) && !/^[-#]/.test(gonio.data.names[i]) ? quote(gonio.data.names[i]) : `'#${i}'`);
  gonio.show = () => {
    const d = gonio.data, [a, b] = ["pair-a", "pair-b"].map((id) => gonio.index($(id).value));
    const known = a >= 0 && b >= 0 && a !== b, p = known ? gonio.pair(a, b) : null;
    $("pair-known").hidden = !p;
    $("pair-says").textContent = a < 0 || b < 0 ? `Name two ${gonio.data.titles[0]}s, or rows as #12.` : a === b ? `Name two different ${gonio.data.titles[0]}s.` : p ? "" : "This pair is not stored in the page; the command answers it.";
    $("pair-command").hidden = !known;
    if (known) { const c = `${d.command} ${typed(a)} ${typed(b)}`; $("pair-line").textContent = `$ ${c}`; $("pair-copy").dataset.copy = c; }
    if (!p) return;
    $("pair-stored").textContent = gonio.cosine(p.cosine);
    const mark = $("pair-mark");
    mark.setAttribute("visibility", p.cosine === null ? "hidden" : "visible");
    mark.setAttribute("cx", 10 + 180 * ((p.cosine ?? 0) + 1) / 2);
    const span = p.reachable ?? null;
    $("pair-span").setAttribute("visibility", span ? "visible" : "hidden");
    if (span) { $("pair-span").setAttribute("x", 10 + 90 * (span[0] + 1)); $("pair-span").setAttribute("width", Math.max(1, 90 * (span[1] - span[0]))); }
    $("pair-reach").textContent = p.in_words ? `equivalent models: ${p.in_words}` : d.reach;
    $("pair-title").textContent = `stored cosine ${$("pair-stored").textContent}; ${$("pair-reach").textContent}`;
    $("pair-use").hidden = p.instead === null || p.instead === undefined;
    $("pair-instead").textContent = gonio.cosine(p.instead);
    $("pair-interval").textContent = p.interval ? `(95 %: ${gonio.cosine(p.interval[0])} to ${gonio.cosine(p.interval[1])})` : "";
    $("pair-from").textContent = p.from === "half" ? "computed in the page from rows rounded to 11 bits" : "";
  };
  function offer(input, list) {  // names that begin so, then names that hold it
    const q = input.value.toLowerCase(), d = gonio.data, out = [];
    for (const at of [(x) => x.startsWith(q), (x) => x.includes(q)]) for (let i = 0; i < d.lower.length && out.length < 20; i++) if (at(d.lower[i]) && !out.includes(i)) out.push(i);
    list.replaceChildren(...out.map((i) => { const o = document.createElement("option"); o.value = d.once[i] ? d.names[i] : `#${i}`; o.label = gonio.shown(i); return o; }));
  }
  document.addEventListener("gonio-ready", () => {
    const d = gonio.data;
    gonio.rows = rowsOf(d.rows); gonio.meant = rowsOf(d.meant);
    for (const id of ["pair-a", "pair-b"]) $(id).addEventListener("input", () => { offer($(id), $(id + "-list")); gonio.show(); });
    const first = d.pairs.length ? d.pairs[0].rows : d.near && d.near.index[0] !== null && d.near.index[0] !== undefined ? [0, d.near.index[0]] : null;
    if (first) [$("pair-a").value, $("pair-b").value] = first.map((i) => (d.once[i] ? d.names[i] : `#${i}`));
    gonio.show();
  });
})();
