"use strict";
// One idea: rows + v gives the same softmax probabilities for every input, and any cosine for any two labels.
// Everything shown is computed from the moved rows, nothing is remembered: what stands still stands still by itself.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { preset: 0, v: [0, 0], off: [0, 0], factor: 1, link: "softmax", pointer: [0.4, 0.3], pair: [0, 1] };

  // ----- mathematics: a head of the plane
  const now = () => data.presets[state.preset];
  const base = () => now().W.map((w, i) => (i === now().stretch ? [w[0] * state.factor, w[1] * state.factor] : w));
  const rows = () => base().map((w) => [w[0] + state.v[0], w[1] + state.v[1]]);
  const bias = (i) => (now().bias ? now().bias[i] : 0);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const cosineOf = (a, b) => a.reduce((t, x, k) => t + x * b[k], 0) / (Math.hypot(...a) * Math.hypot(...b));
  const cap = (z) => (now().softcap ? now().softcap * Math.tanh(z / now().softcap) : z);
  const scores = (W, x) => W.map((w, i) => cap(dot(w, x) + bias(i)));
  // The two chosen rows whole: a slice of a wide head shows two coordinates; what lies outside the plane is two more.
  function whole() {
    const [i, j] = state.pair, W = base(), G = now().outside;
    if (!G) return [[...W[i], 0, 0], [...W[j], 0, 0]];
    const times = (k) => (k === now().stretch ? state.factor : 1), s = Math.sqrt(Math.max(0, G[i][i]));
    const along = s > 0 ? G[i][j] / s : 0, rest = Math.sqrt(Math.max(0, G[j][j] - along * along));
    return [[...W[i], times(i) * s, 0], [...W[j], times(j) * along, times(j) * rest]];
  }
  const moved = (u) => [u[0] + state.v[0], u[1] + state.v[1], u[2] + state.off[0], u[3] + state.off[1]];
  const cosine = () => cosineOf(...whole().map(moved));
  function stored() {  // the cosine in the file: nothing added, no length changed
    const kept = [state.v, state.off, state.factor];
    [state.v, state.off, state.factor] = [[0, 0], [0, 0], 1];
    const c = cosine();
    [state.v, state.off, state.factor] = kept;
    return c;
  }
  function probabilities(W, x, link = state.link) {
    const s = scores(W, x);
    if (link === "sigmoid") return s.map((z) => 1 / (1 + Math.exp(-z)));
    const top = Math.max(...s), e = s.map((z) => Math.exp(z - top)), total = e.reduce((p, q) => p + q, 0);
    return e.map((z) => z / total);
  }
  function translate(c) {  // add the vector to all rows that gives the chosen pair the cosine c
    const [a, b] = whole(), d = a.map((x, k) => x - b[k]), length = Math.hypot(...d);
    if (length === 0) return;
    const put = (v) => { state.v = v.slice(0, 2); state.off = v.slice(2); };
    if (c >= 1) { put(a.map((x, k) => -x + (b[k] - x) / 2)); return; }
    const middle = a.map((x, k) => (x + b[k]) / 2), u = d.map((x) => x / length);
    // A direction orthogonal to the difference: where the rows already lie, or any in the plane.
    const inner = (p, q) => p.reduce((t, x, k) => t + x * q[k], 0);
    let e = middle.map((x, k) => x - inner(middle, u) * u[k]);
    if (Math.hypot(...e) < 1e-9 * (length + Math.hypot(...middle))) { e = [-u[1], u[0], 0, 0]; e = e.map((x, k) => x - inner(e, u) * u[k]); }
    const size = Math.hypot(...e) || 1, h = (length / 2) * Math.sqrt((1 + c) / (1 - c));
    put(middle.map((x, k) => -x + h * e[k] / size));
  }
  function winners(W) {  // labels that win somewhere: exactly, by comparing at every direction between two ties
    const out = new Set(), n = W.length;
    if (now().bias) { for (const x of grid(81)) out.add(argmax(scores(W, x))); return out; }
    const angles = [];
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) {
      const t = Math.atan2(W[j][0] - W[i][0], W[i][1] - W[j][1]);
      angles.push(t, t > 0 ? t - Math.PI : t + Math.PI);
    }
    angles.sort((p, q) => p - q);
    for (let k = 0; k < angles.length; k++) {
      const next = k + 1 < angles.length ? angles[k + 1] : angles[0] + 2 * Math.PI;
      if (next - angles[k] < 1e-9) continue;
      const t = (angles[k] + next) / 2;
      out.add(argmax(scores(W, [Math.cos(t), Math.sin(t)])));
    }
    return out;
  }
  function argmax(s) { let best = 0; for (let i = 1; i < s.length; i++) if (s[i] > s[best]) best = i; return best; }
  function grid(n) {
    const r = now().reach, out = [];
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) out.push([(2 * i / (n - 1) - 1) * r, (2 * j / (n - 1) - 1) * r]);
    return out;
  }
  function largestChange() {  // of any probability at any of 900 inputs, against the head as it came
    const before = now().W, after = rows();
    let most = 0;
    for (const x of grid(30)) {
      const p = probabilities(before, x), q = probabilities(after, x);
      for (let i = 0; i < p.length; i++) most = Math.max(most, Math.abs(p[i] - q[i]));
    }
    return most;
  }

  // ----- drawing
  const hue = (i) => (i * 137.508) % 360;
  const paint = (i, light) => `hsl(${hue(i)} 62% ${light ?? (dark.matches ? 42 : 70)}%)`;
  const rgb = (i) => {
    const h = hue(i) / 60, s = 0.62, l = dark.matches ? 0.36 : 0.76, c = (1 - Math.abs(2 * l - 1)) * s;
    const x = c * (1 - Math.abs((h % 2) - 1)), m = l - c / 2;
    const t = [[c, x, 0], [x, c, 0], [0, c, x], [0, x, c], [x, 0, c], [c, 0, x]][Math.floor(h) % 6];
    return t.map((u) => Math.round(255 * (u + m)));
  };
  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1, size = Math.max(1, Math.round(canvas.clientWidth * ratio));
    if (canvas.width !== size) { canvas.width = size; canvas.height = size; }
    const g = canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    return [g, size];
  }
  const STEP = 240;
  const field = document.createElement("canvas");
  field.width = field.height = STEP;
  function drawInputs() {
    const [g, size] = fit($("inputs")), W = rows(), r = now().reach;
    const f = field.getContext("2d"), image = f.createImageData(STEP, STEP);
    for (let py = 0; py < STEP; py++) for (let px = 0; px < STEP; px++) {
      const x = [((px + 0.5) / STEP * 2 - 1) * r, (1 - (py + 0.5) / STEP * 2) * r], s = scores(W, x);
      let colour;
      if (state.link === "softmax") colour = rgb(argmax(s));
      else { let code = 0; s.forEach((z, i) => { if (z > 0) code = (code + (i + 1) * 7919 * (i + 3)) % 100003; }); colour = rgb(code % 47); }
      image.data.set([...colour, 255], 4 * (py * STEP + px));
    }
    f.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(field, 0, 0, size, size);
    const at = ([x, y]) => [(x / r + 1) / 2 * size, (1 - y / r) / 2 * size];
    const [cx, cy] = at(state.pointer), ink = getComputedStyle(document.body).color;
    g.strokeStyle = ink; g.lineWidth = size / 200;
    g.beginPath(); g.arc(cx, cy, size / 45, 0, 7); g.moveTo(cx - size / 25, cy); g.lineTo(cx + size / 25, cy);
    g.moveTo(cx, cy - size / 25); g.lineTo(cx, cy + size / 25); g.stroke();
    if (state.link === "softmax") {
      g.fillStyle = ink; g.font = `${Math.round(size / 24)}px system-ui`; g.textAlign = "center";
      const sums = new Map();
      for (const x of grid(25)) { const k = argmax(scores(W, x)), t = sums.get(k) ?? [0, 0, 0]; sums.set(k, [t[0] + x[0], t[1] + x[1], t[2] + 1]); }
      for (const [k, t] of sums) if (t[2] > 12) g.fillText(short(k), ...at([t[0] / t[2], t[1] / t[2]]));
    }
  }
  function drawRows() {
    const [g, size] = fit($("rows")), W = rows(), ink = getComputedStyle(document.body).color;
    const soft = getComputedStyle(document.documentElement).getPropertyValue("--line");
    const far = Math.max(...W.map((w) => Math.hypot(...w)), ...base().map((w) => Math.hypot(...w)), 1e-9) * 1.2;
    const at = ([x, y]) => [(x / far + 1) / 2 * size, (1 - y / far) / 2 * size];
    g.clearRect(0, 0, size, size);
    g.strokeStyle = soft; g.lineWidth = 1;
    g.beginPath(); g.moveTo(0, size / 2); g.lineTo(size, size / 2); g.moveTo(size / 2, 0); g.lineTo(size / 2, size); g.stroke();
    g.font = `${Math.round(size / 26)}px system-ui`; g.textAlign = "center"; g.textBaseline = "middle";
    const never = new Set(W.keys()); winners(W).forEach((k) => never.delete(k));
    W.forEach((w, i) => {
      const [x, y] = at(w), chosen = state.pair.includes(i);
      g.strokeStyle = g.fillStyle = paint(i, dark.matches ? 60 : 45);
      g.lineWidth = chosen ? size / 90 : size / 220;
      g.setLineDash(never.has(i) ? [size / 80, size / 80] : []);
      g.beginPath(); g.moveTo(size / 2, size / 2); g.lineTo(x, y); g.stroke();
      g.setLineDash([]);
      g.beginPath(); g.arc(x, y, size / 80, 0, 7); g.fill();
      g.fillStyle = ink;
      const out = Math.hypot(...w) || 1;
      if (W.length <= 12 || chosen || !never.has(i)) {
        const half = g.measureText(short(i)).width / 2;  // a name at the edge stays inside
        g.fillText(short(i), Math.min(Math.max(x + w[0] / out * size / 28, half), size - half), y - w[1] / out * size / 28);
      }
    });
  }
  const name = (i) => now().labels[i];
  const brief = (i) => (name(i).length > 40 ? name(i).slice(0, 39) + "…" : name(i));
  const short = (i) => (name(i).length > 10 ? name(i).slice(0, 9) + "…" : name(i));
  const number = (x) => (Number.isFinite(x) ? (Math.abs(x) < 1e-3 && x !== 0 ? x.toExponential(1) : x.toFixed(4)) : "undefined");

  function truth() {  // what holds of the predictions, for the link and the changes shown
    const moving = Math.hypot(...state.v, ...state.off) > 0, what = now().ranks ? "order of scores" : "probability";
    const said = [];
    if (state.factor !== 1) said.push(`The length of ${brief(now().stretch)} was changed: this is another model.`);
    if (state.link === "sigmoid") said.push(moving ? "Under a sigmoid a vector added to all rows changes probabilities: this is another model." : "Under a sigmoid a vector added to all rows would change probabilities.");
    else if (now().softcap) said.push(moving ? "The logits are soft-capped: a vector added to all rows changes probabilities, though not which label wins." : "The logits are soft-capped: a vector added to all rows would change probabilities, though not which label wins.");
    else said.push(`A vector added to all rows changes no ${what}.`);
    return said.join(" ");
  }
  function show() {
    const W = rows(), [a, b] = state.pair, p = probabilities(W, state.pointer), change = largestChange();
    $("cosine").textContent = number(cosine());
    $("stored").textContent = `cosine of the two label vectors${now().outside ? ", all of their entries" : ""}; ${number(stored())} as stored`;
    $("truth").textContent = truth();
    $("change").textContent = change === 0 ? "0" : change < 1e-6 ? change.toExponential(1) : change.toFixed(3);
    $("moved").textContent = number(Math.hypot(...state.v, ...state.off));
    const wins = winners(W);
    $("wins").textContent = `${wins.size} of ${W.length} ${now().slice ? "win here" : "can win"}`;
    const never = [...W.keys()].filter((k) => !wins.has(k)).map(short);
    $("never").textContent = never.length ? `${now().slice ? "not in this plane" : "never"}: ${never.slice(0, 6).join(", ")}${never.length > 6 ? " …" : ""}` : "no label is left out";
    const order = [...p.keys()].sort((i, j) => p[j] - p[i]).slice(0, 8), list = $("bars");
    list.textContent = "";
    for (const i of order) {
      const li = document.createElement("li"), n = document.createElement("span"), bar = document.createElement("div"), v = document.createElement("span");
      n.className = "name"; n.textContent = name(i); n.title = name(i);
      bar.className = "bar"; bar.style.width = `${100 * p[i]}%`; bar.style.background = paint(i);
      v.className = "value"; v.textContent = p[i].toFixed(4);
      li.append(n, bar, v); list.append(li);
    }
    $("pairname").textContent = `cosine of ${brief(a)} and ${brief(b)}`;
    $("inputs").setAttribute("aria-label", `Inputs, coloured by ${state.link === "softmax" ? "the label that wins" : "the labels that are on"}. At the pointer ${name(order[0])} has probability ${p[order[0]].toFixed(2)}.`);
    $("rows").setAttribute("aria-label", `Label vectors. ${$("pairname").textContent} is ${$("cosine").textContent}.`);
    drawInputs(); drawRows();
  }

  // ----- controls
  function choose(k) {
    state.preset = k; state.v = [0, 0]; state.off = [0, 0]; state.factor = 1;
    state.pair = [...now().pair]; state.pointer = [now().reach * 0.35, now().reach * 0.25];
    state.link = now().link ?? "softmax";
    for (const id of ["first", "second"]) {
      $(id).textContent = "";
      now().labels.forEach((l, i) => { const o = document.createElement("option"); o.value = i; o.textContent = l; $(id).append(o); });
    }
    $("first").value = state.pair[0]; $("second").value = state.pair[1];
    $("link").value = state.link; $("preset").value = k; $("story").textContent = now().story; $("dashes").textContent = now().slice ? "Drawn is the part of each vector that lies in this plane. Dashed vectors win nowhere in it." : "Dashed vectors never win.";
    $("stretchbox").hidden = now().stretch === undefined || now().stretch === null;
    $("stretch").value = 1; $("stretchname").textContent = now().stretch === undefined || now().stretch === null ? "" : `length of ${brief(now().stretch)}`;
    sync(); show();
  }
  function sync() { $("dial").value = cosine() || 0; }
  data.presets.forEach((p, k) => { const o = document.createElement("option"); o.value = k; o.textContent = p.name; $("preset").append(o); });
  $("preset").addEventListener("change", (e) => choose(Number(e.target.value)));
  $("next").addEventListener("click", () => choose((state.preset + 1) % data.presets.length));
  $("reset").addEventListener("click", () => choose(state.preset));
  $("link").addEventListener("change", (e) => { state.link = e.target.value; show(); });
  $("dial").addEventListener("input", (e) => { translate(Number(e.target.value)); show(); });
  $("stretch").addEventListener("input", (e) => { state.factor = Number(e.target.value); show(); });
  for (const [k, id] of [[0, "first"], [1, "second"]]) $(id).addEventListener("change", (e) => { state.pair[k] = Number(e.target.value); state.off = [0, 0]; sync(); show(); });
  let queued = false;
  const later = () => { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; show(); }); } };
  function place(e, canvas, reach) {
    const box = canvas.getBoundingClientRect();
    return [((e.clientX - box.left) / box.width * 2 - 1) * reach, (1 - (e.clientY - box.top) / box.height * 2) * reach];
  }
  $("inputs").addEventListener("pointermove", (e) => { if (e.pointerType === "mouse" || e.buttons) { state.pointer = place(e, $("inputs"), now().reach); later(); } });
  $("inputs").addEventListener("pointerdown", (e) => { state.pointer = place(e, $("inputs"), now().reach); later(); });
  let grip = null;
  $("rows").addEventListener("pointerdown", (e) => {
    const far = Math.max(...rows().map((w) => Math.hypot(...w)), ...base().map((w) => Math.hypot(...w)), 1e-9) * 1.2;
    grip = { from: place(e, $("rows"), far), v: [...state.v], far };
    $("rows").setPointerCapture(e.pointerId);
  });
  $("rows").addEventListener("pointermove", (e) => {
    if (!grip) return;
    const at = place(e, $("rows"), grip.far);
    state.v = [grip.v[0] + at[0] - grip.from[0], grip.v[1] + at[1] - grip.from[1]];
    sync(); later();
  });
  for (const end of ["pointerup", "pointercancel"]) $("rows").addEventListener(end, () => { grip = null; });
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  for (const id of ["inputs", "rows"]) $(id).addEventListener("keydown", (e) => {
    const a = arrows[e.key];
    if (!a) return;
    e.preventDefault();
    const what = id === "rows" ? state.v : state.pointer, step = now().reach / 25;
    what[0] += a[0] * step; what[1] += a[1] * step;
    if (id === "rows") sync();
    show();
  });
  window.addEventListener("resize", later);
  dark.addEventListener("change", later);
  window.gonio = { state, rows, choose, show, probabilities: () => probabilities(rows(), state.pointer), cosine, stored, truth, winners: () => [...winners(rows())].sort((p, q) => p - q), largestChange };
  choose(0);
})();
