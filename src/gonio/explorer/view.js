// Drawing: label vectors with ghosts of the first ones, regions as polygons, heat maps. It reads, and changes nothing.
const view = (() => {
  const $ = (id) => document.getElementById(id), dark = window.matchMedia("(prefers-color-scheme: dark)");
  const OKABE = ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999"];
  const style = (name) => getComputedStyle(document.body).getPropertyValue(name);
  const cut = (x, most) => (x.length > most ? x.slice(0, most - 1) + "…" : x);
  const paint = (i, n) => (n <= OKABE.length ? OKABE[i] : dark.matches ? "#2a2f36" : "#eef1f4");  // beyond eight labels outlines tell
  const line = (i, n) => (n <= OKABE.length ? OKABE[i] : dark.matches ? "#a8adb5" : "#565b63");

  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1, w = Math.max(1, Math.round(canvas.clientWidth * ratio)), h = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const g = canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0); g.clearRect(0, 0, w, h);
    return [g, w, h, ratio];
  }
  const placer = (w, h, reach) => { const k = Math.min(w, h) / 2 / reach; return { at: ([x, y]) => [w / 2 + k * x, h / 2 - k * y], k }; };
  function path(g, poly, at) { g.beginPath(); poly.forEach((p, k) => { const [x, y] = at(p); if (k) g.lineTo(x, y); else g.moveTo(x, y); }); g.closePath(); }
  function mix(signs, n) {  // a colour for a set of labels: the mean of its members' colours, paler where few are on
    const on = [...signs].map((s, i) => (s === "+" ? i : -1)).filter((i) => i >= 0), back = dark.matches ? [36, 40, 46] : [255, 255, 255];
    if (!on.length) return `rgb(${back})`;
    const sum = [0, 0, 0];
    for (const i of on) { const c = n <= OKABE.length ? OKABE[i] : `#${((i * 2654435761) >>> 8 & 0xffffff).toString(16).padStart(6, "0")}`; for (let k = 0; k < 3; k++) sum[k] += parseInt(c.slice(1 + 2 * k, 3 + 2 * k), 16); }
    return `rgb(${sum.map((x, k) => Math.round(0.7 * x / on.length + 0.3 * back[k]))})`;
  }
  function contrast(g, words, x, y, size) {  // a name that reads on any ground
    g.font = `600 ${size}px system-ui`; g.textAlign = "center"; g.textBaseline = "middle";
    const half = g.measureText(words).width / 2 + 2; x = Math.max(half, Math.min(g.canvas.width - half, x));
    g.lineWidth = size / 4; g.strokeStyle = dark.matches ? "rgba(10,10,10,.75)" : "rgba(255,255,255,.85)"; g.lineJoin = "round";
    g.strokeText(words, x, y); g.fillStyle = dark.matches ? "#f5f5f0" : "#111"; g.fillText(words, x, y);
  }
  function arrows(canvas, s, first, now, pair, dead, reach) {
    const [g, w, h, ratio] = fit(canvas), { at } = placer(w, h, reach), n = s.W.length, [ox, oy] = at([0, 0]), named = [];
    g.strokeStyle = style("--line"); g.lineWidth = ratio;
    g.beginPath(); g.moveTo(0, oy); g.lineTo(w, oy); g.moveTo(ox, 0); g.lineTo(ox, h); g.stroke();
    const draw = (p, i, ghost) => {
      const [x, y] = at(p), chosen = pair.includes(i);
      g.globalAlpha = ghost ? 0.3 : 1;
      g.strokeStyle = g.fillStyle = n <= OKABE.length || !chosen ? line(i, n) : style("--accent");
      g.lineWidth = (chosen ? 3.5 : 1.6) * ratio * (ghost ? 0.7 : 1);
      g.setLineDash(dead.has(i) && !ghost ? [5 * ratio, 4 * ratio] : []);
      g.beginPath(); g.moveTo(ox, oy); g.lineTo(x, y); g.stroke(); g.setLineDash([]);
      const t = Math.atan2(y - oy, x - ox), a = 7 * ratio;
      g.beginPath(); g.moveTo(x, y); g.lineTo(x - a * Math.cos(t - 0.4), y - a * Math.sin(t - 0.4)); g.lineTo(x - a * Math.cos(t + 0.4), y - a * Math.sin(t + 0.4)); g.fill();
      if (!ghost) named.push([i, x + 11 * ratio * Math.cos(t), y + 11 * ratio * Math.sin(t), chosen]);
    };
    first.forEach((p, i) => draw(p, i, true));
    now.forEach((p, i) => draw(p, i, false));
    g.globalAlpha = 1;
    for (const [i, x, y, chosen] of named) if (n <= 12 || chosen || !dead.has(i)) {
      const words = cut(s.labels[i], 14); g.font = `600 ${12 * ratio}px system-ui`;
      const half = g.measureText(words).width / 2;
      contrast(g, words, Math.min(Math.max(x, half), w - half), Math.min(Math.max(y, 8 * ratio), h - 8 * ratio), (chosen ? 13 : 11) * ratio);
    }
  }
  function pointer(g, at, p, ratio) {
    const [x, y] = at(p), a = 9 * ratio;
    g.strokeStyle = style("--ink"); g.lineWidth = 1.8 * ratio;
    g.beginPath(); g.arc(x, y, a * 0.6, 0, 7); g.moveTo(x - a, y); g.lineTo(x + a, y); g.moveTo(x, y - a); g.lineTo(x, y + a); g.stroke();
  }
  function frame(g, at, reach, ratio) { const [x, y] = at([-reach, reach]), [u, v] = at([reach, -reach]); g.strokeStyle = style("--line"); g.lineWidth = ratio; g.strokeRect(x, y, u - x, v - y); }
  function regions(canvas, s, polys, where) {
    const [g, w, h, ratio] = fit(canvas), { at } = placer(w, h, s.reach * 1.02), n = s.W.length;
    polys.forEach((poly, i) => { if (!poly.length) return; path(g, poly, at); g.globalAlpha = 0.75; g.fillStyle = paint(i, n); g.fill(); g.globalAlpha = 1; g.strokeStyle = dark.matches ? "#000" : n > OKABE.length ? "#565b63" : "#fff"; g.lineWidth = 1.2 * ratio; g.stroke(); });
    if (s.inputs) { path(g, inputSets.edge(s.inputs, s.reach), at); g.strokeStyle = style("--ink"); g.lineWidth = 2 * ratio; g.stroke(); }
    dots(g, s, at, ratio);
    polys.forEach((poly, i) => { if (geometry.area(poly) > 0.004 * s.reach * s.reach) contrast(g, cut(s.labels[i], 14), ...at(geometry.middle(poly)), 12 * ratio); });
    frame(g, at, s.reach, ratio); pointer(g, at, where, ratio);
  }
  function sets(canvas, s, cells, where) {
    const [g, w, h, ratio] = fit(canvas), { at } = placer(w, h, s.reach * 1.02), n = s.W.length;
    for (const c of cells) { path(g, c.poly, at); g.fillStyle = mix(c.signs, n); g.fill(); g.strokeStyle = dark.matches ? "#000" : "#fff"; g.lineWidth = 1.2 * ratio; g.stroke(); }
    dots(g, s, at, ratio);
    if (n <= 8) for (const c of cells) if (geometry.area(c.poly) > 0.02 * s.reach * s.reach) contrast(g, [...c.signs].map((x, i) => (x === "+" ? s.labels[i] : "")).filter(Boolean).join(" ") || "∅", ...at(geometry.middle(c.poly)), 11 * ratio);
    frame(g, at, s.reach, ratio); pointer(g, at, where, ratio);
  }
  function rankings(canvas, s, polys, ties, where) {
    const [g, w, h, ratio] = fit(canvas), { at } = placer(w, h, s.reach * 1.02), n = s.W.length;
    polys.forEach((poly, i) => { if (!poly.length) return; path(g, poly, at); g.globalAlpha = 0.6; g.fillStyle = paint(i, n); g.fill(); g.globalAlpha = 1; });
    g.save(); path(g, [[-s.reach, -s.reach], [s.reach, -s.reach], [s.reach, s.reach], [-s.reach, s.reach]], at); g.clip();
    g.strokeStyle = dark.matches ? "#d8d8d0" : "#333"; g.lineWidth = ratio;
    for (const [d, c] of ties) { const l = Math.hypot(...d); if (!l) continue; const m = [-d[0] * c / l / l, -d[1] * c / l / l], e = [-d[1] / l * 4 * s.reach, d[0] / l * 4 * s.reach]; const [x, y] = at([m[0] + e[0], m[1] + e[1]]), [u, v] = at([m[0] - e[0], m[1] - e[1]]); g.beginPath(); g.moveTo(x, y); g.lineTo(u, v); g.stroke(); }
    g.restore();
    polys.forEach((poly, i) => { if (geometry.area(poly) > 0.01 * s.reach * s.reach) contrast(g, s.labels[i], ...at(geometry.middle(poly)), 12 * ratio); });
    frame(g, at, s.reach, ratio); pointer(g, at, where, ratio);
  }
  function dots(g, s, at, ratio) {
    if (!s.dots) return;
    g.fillStyle = style("--ink"); g.globalAlpha = 0.35;
    for (const p of s.dots) if (Math.abs(p[0]) <= s.reach && Math.abs(p[1]) <= s.reach) { const [x, y] = at(p); g.beginPath(); g.arc(x, y, 1.8 * ratio, 0, 7); g.fill(); }
    g.globalAlpha = 1;
  }
  function shade(c) {  // -1 orange, 0 the ground, 1 blue
    if (!Number.isFinite(c)) return "#808080";
    const end = c < 0 ? [213, 94, 0] : [0, 114, 178], back = dark.matches ? [28, 31, 35] : [255, 255, 255], t = Math.abs(c);
    return `rgb(${end.map((x, k) => Math.round(t * x + (1 - t) * back[k]))})`;
  }
  function heat(canvas, labels, value, pair) {
    const [g, w, h, ratio] = fit(canvas), n = labels.length, font = Math.max(7, Math.min(12, h / ratio / n)) * ratio;
    g.font = `${font}px system-ui`;
    const names = labels.map((x) => cut(x, 12)), left = Math.min(w / 3, Math.max(...names.map((x) => g.measureText(x).width)) + 6 * ratio), size = Math.min(h / n, (w - left) / n);
    g.textAlign = "right"; g.textBaseline = "middle"; g.fillStyle = style("--soft");
    names.forEach((x, i) => g.fillText(x, left - 3 * ratio, (i + 0.5) * size));
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { g.fillStyle = shade(value(i, j)); g.fillRect(left + j * size, i * size, Math.ceil(size), Math.ceil(size)); }
    g.strokeStyle = style("--ink"); g.lineWidth = 1.5 * ratio;
    for (const [i, j] of [pair, [pair[1], pair[0]]]) g.strokeRect(left + j * size, i * size, size, size);
  }
  function bars(list, rows) {  // [name, share, colour, words]
    list.replaceChildren(...rows.map(([name, share, colour, words]) => {
      const li = document.createElement("li"), n = document.createElement("span"), bar = document.createElement("div"), v = document.createElement("span");
      n.className = "name"; n.textContent = name; n.title = name; bar.className = "bar"; bar.style.width = `${100 * share}%`; bar.style.background = colour;
      v.className = "value"; v.textContent = words; li.append(n, bar, v);
      return li;
    }));
  }
  return { $, dark, cut, line, arrows, regions, sets, rankings, heat, bars, placer };
})();
