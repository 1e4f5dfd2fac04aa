// The page's state, what is said about it, and every control: pointer, keys, touch, the address.
(() => {
  const { $, cut } = view, data = JSON.parse($("data").textContent), g = geometry;
  const scenes = data.steps.map((s) => s.scenes), real = data.model;
  let around = null;  // the labels that can be searched for, once they are unpacked
  const state = { step: real ? -1 : 0, scene: 0, change: null, factor: 1, pair: [0, 1], how: "add", pointer: [0, 0] };
  const step = () => (state.step < 0 ? real : data.steps[state.step]);
  const raw = () => (state.step >= 0 ? scenes[state.step][state.scene] : state.scene ? around.scene(state.scene - 1) : real.scenes[0]);  // of a model, scene 0 is the first plane, 1 + i that about row i
  const link = () => step().link;
  const some = (s, n) => { for (let k = n; ; k += 2) { const X = g.grid(s.reach, k).filter((x) => !s.inputs || inputSets.contains(s.inputs, x)); if (X.length >= n * n) return X; } };  // n n inputs at least that can occur
  const held = (p) => inputSets.nearest(raw().inputs, p, raw().reach);
  let cache = { scene: null };
  const scene = () => g.scaled(raw(), step().stretch, state.factor);
  const first = () => { if (cache.scene !== raw()) { const s = g.scaled(raw(), null, 1), h = g.changed(s, g.none(s.W.length), state.pair); cache = { scene: raw(), s, h, X: some(s, 30) }; cache.p = cache.X.map((x) => g.probabilities(s, h, x, link())); cache.link = link(); } return cache; };
  const now = () => { const s = scene(); return [s, g.changed(s, state.change ?? g.none(s.W.length), state.pair)]; };
  const kind = () => (link() === "ranking" ? "softmax" : link());
  const number = (x) => (!Number.isFinite(x) ? "undefined" : Math.abs(x) < 1e-9 ? "0" : Math.abs(x) < 1e-3 && x !== 0 ? x.toExponential(1) : Math.abs(x) < 1 && Math.abs(+x.toFixed(4)) === 1 ? x.toPrecision(8) : x.toFixed(4));
  const brief = (i) => cut(raw().labels[i], 16);
  const ordered = (z) => [...z.keys()].sort((i, j) => z[j] - z[i]);

  function largestChange() {  // of any probability at 900 inputs or more, against the model as it came
    const f = first(), [s, h] = now();
    let most = 0;
    f.X.forEach((x, k) => { const p = g.probabilities(s, h, x, link()); for (let i = 0; i < p.length; i++) most = Math.max(most, Math.abs(p[i] - f.p[k][i])); });
    return most;
  }
  const regions = (s, h) => g.winners(h, s.reach, s.inputs === undefined ? undefined : inputSets.edge(s.inputs, s.reach));
  const able = (s, h, polys) => (s.inputs === undefined ? polys.map((p, i) => (p.length ? i : -1)).filter((i) => i >= 0) : inputSets.able(h, s.inputs, s.reach));
  function truth(change) {
    const said = [], moved = state.change !== null, s = raw();
    if (state.factor !== 1) said.push(`The length of ${brief(step().stretch)} was changed: no cosine moves, and this is another model.`);
    if (moved && state.how === "map") said.push("Rows were mapped and inputs mapped against them: the same scores.");
    else if (moved && link() === "sigmoid") said.push("Under a sigmoid a vector added to all rows changes probabilities: this is another model.");
    else if (moved && s.softcap) said.push("The logits are soft-capped: a vector added to all rows changes probabilities, though not which label wins.");
    else if (moved) said.push(step().ranks ? "A vector added to all rows changes no order of scores." : "A vector added to all rows changes no probability.");
    if (s.inputs) said.push("Empty parts of the square are inputs that cannot occur; who can win is told of all that can, beyond the square too.");
    if (s.note) said.push(s.note);
    return said.join(" ");
  }
  let drawnBars = 0;
  function show() {
    const began = performance.now(), [s, h] = now(), f = first(), [a, b] = state.pair, n = s.W.length, k = link();
    const polys = k === "sigmoid" ? null : regions(s, h), wins = polys ? able(s, h, polys) : [];
    const dead = new Set(k === "sigmoid" ? [] : [...Array(n).keys()].filter((i) => !wins.includes(i)));
    const c = g.cosine(h.G, a, b), change = largestChange(), p = g.probabilities(s, h, state.pointer, k), order = ordered(p);
    $("cosine").textContent = number(c); $("pairname").textContent = `cosine ${brief(a)} · ${brief(b)}`;
    $("stored").textContent = `${number(g.cosine(f.s.G, a, b))} as stored${h.size ? `; added a vector of length ${number(h.size)}` : ""}`;
    $("dial").setAttribute("aria-valuetext", `cosine ${number(c)}`); $("dial").setAttribute("aria-label", $("pairname").textContent);
    $("change").textContent = change === 0 ? "0" : change < 1e-6 ? change.toExponential(1) : change.toFixed(3);
    $("changename").textContent = `largest change of any probability, at ${f.X.length} inputs`;
    $("still").textContent = change < 1e-9 ? "still" : "moved"; $("still").className = change < 1e-9 ? "" : "on";
    const reach = 1.18 * Math.max(1e-9, ...f.h.arrows.map((w) => Math.hypot(...w)), ...h.arrows.map((w) => Math.hypot(...w)));
    show.reach = reach;
    view.arrows($("rows"), s, f.h.arrows, h.arrows, state.pair, dead, reach);
    $("moves").textContent = k === "ranking" ? s.name : state.change ? "moved" : "drag"; $("moves").className = state.change ? "on" : "";
    if (k === "sigmoid") {
      const cells = g.cells(h.slopes.map((w, i) => [w, h.levels[i]]), s.reach);
      view.sets($("inputs"), s, cells, state.pointer); show.cells = cells;
      $("wins").textContent = `${cells.length} label sets`; $("never").textContent = "in this square of inputs";
    } else if (k === "ranking") {
      const ties = g.ties(h);
      view.rankings($("inputs"), s, polys, ties, state.pointer);
      show.ranks = g.cells(ties, s.reach).length;
      const other = state.scene ^ 1, t = g.scaled(scenes[state.step][other], null, 1), o = g.changed(t, g.none(t.W.length), state.pair), others = g.ties(o);
      view.rankings($("other"), t, g.winners(o, t.reach), others, state.pointer); show.otherRanks = g.cells(others, t.reach).length;
      const words = (z) => ordered(z).map((i) => s.labels[i]).join(" ");
      show.here = words(g.scores(s, h, state.pointer)); show.there = words(g.scores(t, o, state.pointer));
      $("wins").textContent = show.here; $("never").textContent = `ranking at the pointer, one of ${show.ranks}`;
      $("change").textContent = show.there; $("changename").textContent = `in the other model, one of ${show.otherRanks}`;
      $("still").textContent = s.name; $("still").className = ""; $("thirdname").textContent = t.name;
    } else {
      view.regions($("inputs"), s, polys, state.pointer);
      const part = s.slice || (s.bias && s.inputs === undefined);  // of the inputs is all that is looked at
      $("wins").textContent = `${wins.length} of ${n} ${part ? "win here" : "can win"}`;
      const never = [...dead].map(brief);
      $("never").textContent = never.length ? `${part ? "not here" : "never"}: ${never.slice(0, 4).join(", ")}${never.length > 4 ? " …" : ""}` : "";
    }
    if (k !== "ranking") {
      $("thirdname").textContent = `${k === "sigmoid" ? "P(label is on | input)" : "P(label | input)"} at the pointer`;
      view.bars($("bars"), order.slice(0, 8).map((i) => [s.labels[i], p[i], view.line(i, n), p[i].toFixed(4)]));
    }
    if (n <= 30) {
      view.heat($("heat"), s.labels, (i, j) => g.cosine(h.G, i, j), state.pair);
      const X = cache.few ??= some(s, 12), C = s.C ?? g.correlations(s, h, kind(), X);
      show.C = C;
      view.heat($("alike"), s.labels, (i, j) => C[i][j], state.pair);
      let off = 0, alike = 0;
      const C0 = s.C ?? (cache.C ??= g.correlations(f.s, f.h, kind(), X));
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { off = Math.max(off, Math.abs(g.cosine(h.G, i, j) - g.cosine(f.s.G, i, j)) || 0); alike = Math.max(alike, Math.abs(C[i][j] - C0[i][j]) || 0); }
      $("heatmoves").textContent = off < 1e-9 ? "still" : "changed"; $("heatmoves").className = off < 1e-9 ? "" : "on";
      $("heatstill").textContent = alike < 1e-9 ? "still" : "changed"; $("heatstill").className = alike < 1e-9 ? "" : "on";
    }
    $("truth").textContent = truth(change);
    if (performance.now() - drawnBars > 250) {
      drawnBars = performance.now();
      $("inputs").setAttribute("aria-label", `Inputs by what is predicted. At the pointer ${s.labels[order[0]]} has probability ${p[order[0]].toFixed(2)}.`);
      $("rows").setAttribute("aria-label", `Label vectors. ${$("pairname").textContent} is ${$("cosine").textContent}.`);
      $("heat").setAttribute("aria-label", `Cosines of ${n} labels, ${$("heatmoves").textContent}`); $("alike").setAttribute("aria-label", `Correlations of predictions of ${n} labels, ${$("heatstill").textContent}`);
      $("other").setAttribute("aria-label", `Regions of the other model: ${$("thirdname").textContent}`);
      remember();
    }
    window.gonio.frames.push(performance.now() - began);
    if (window.gonio.frames.length > 600) window.gonio.frames.shift();
  }
  let queued = false;
  const later = () => { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; show(); }); } };

  // ----- changing
  function dial(c) {
    const s = scene();
    state.change = state.how === "map" ? g.mapped(s, state.pair, c) : g.smallest(s, state.pair, c);
    later();
  }
  function sync() { const [, h] = now(); $("dial").value = g.cosine(h.G, ...state.pair) || 0; }
  function choose(k, at = 0) {
    stop();
    state.step = k; state.scene = at; state.change = null; state.factor = 1; state.how = step().how;
    state.pair = [...(raw().pair ?? step().pair)]; state.pointer = held([raw().reach * 0.35, raw().reach * 0.22]);
    cache = { scene: null };
    for (const b of $("steps").children) { if (Number(b.dataset.step) === k) b.setAttribute("aria-current", "step"); else b.removeAttribute("aria-current"); }
    $("story").textContent = raw().story ?? step().story;
    const ranking = link() === "ranking";
    $("scenebox").hidden = k < 0 || scenes[k].length < 2; $("scenename").textContent = raw().inputs === undefined ? "model" : "inputs"; $("searchbox").hidden = k >= 0 || !$("labels-data").textContent.trim(); if (k < 0) $("search").value = at ? around.typed(at - 1) : "";
    $("howbox").hidden = ranking || (k >= 0 && link() !== "sigmoid"); $("how").value = state.how;
    $("other").hidden = !ranking; $("bars").hidden = ranking; $("heats").hidden = ranking || raw().W.length > 30; $("dialbox").hidden = ranking;
    $("first").parentElement.hidden = $("second").parentElement.hidden = ranking;
    $("stretchbox").hidden = step().stretch === null || step().stretch === undefined || ranking;
    $("stretch").value = 1; $("stretchname").textContent = $("stretchbox").hidden ? "" : `length of ${brief(step().stretch)}`;
    $("alikename").textContent = raw().alike ?? "Correlation of predictions"; $("regionname").textContent = link() === "sigmoid" ? "Label sets" : "Regions";
    if (k >= 0) { $("scene").replaceChildren(...scenes[k].map((s, i) => option(i, s.name))); $("scene").value = at; }
    for (const id of ["first", "second"]) $(id).replaceChildren(...raw().labels.map((x, i) => option(i, cut(x, 24))));
    [$("first").value, $("second").value] = state.pair;
    sync(); show();
  }
  const option = (value, words) => { const o = document.createElement("option"); o.value = value; o.textContent = words; return o; };
  let playing = null;
  function stop() { if (playing) { cancelAnimationFrame(playing); playing = null; } }
  function play() {  // the cosine runs down to -1, up to 1 and home, once
    stop();
    const s = scene(), home = g.cosine(s.G, ...state.pair), began = performance.now();
    if (link() === "ranking" || !Number.isFinite(home)) return;
    const way = [[0, home], [0.3, -1], [0.75, 0.98], [1, home]];
    const run = (t) => {
      const x = Math.min(1, (t - began) / 3200), k = Math.max(1, way.findIndex(([u]) => x <= u)), [u, c] = way[k - 1], [v, d] = way[k];
      const e = (x - u) / (v - u), to = c + (d - c) * (0.5 - Math.cos(Math.PI * e) / 2);
      $("dial").value = to;
      if (x < 1) { state.change = state.how === "map" ? g.mapped(s, state.pair, to) : g.smallest(s, state.pair, to); show(); playing = requestAnimationFrame(run); } else { state.change = null; playing = null; sync(); show(); }
    };
    playing = requestAnimationFrame(run);
  }
  // ----- the address: what is shown can be sent to others
  function remember() {
    if (playing) return;
    const parts = [`step=${state.step < 0 ? "model" : data.steps[state.step].key}`, `scene=${state.scene}`, `pair=${state.pair.join(",")}`, `how=${state.how}`];
    if (state.change) parts.push(`cos=${(+$("dial").value).toFixed(3)}`);
    if (state.factor !== 1) parts.push(`length=${state.factor}`);
    parts.push(`at=${state.pointer.map((x) => +x.toPrecision(4)).join(",")}`);
    history.replaceState(null, "", "#" + parts.join("&"));
  }
  function recall() {
    const q = new URLSearchParams(location.hash.slice(1));
    if (!q.has("step")) return false;
    const k = q.get("step") === "model" ? (real ? -1 : 0) : Math.max(0, data.steps.findIndex((s) => s.key === q.get("step"))), at = Number(q.get("scene") ?? 0);
    choose(k, (k < 0 ? at > 0 && around && around.has(at - 1) : scenes[k][at]) ? at : 0);
    const n = raw().W.length, pair = (q.get("pair") ?? "").split(",").map(Number);
    if (pair.length === 2 && pair.every((i) => Number.isInteger(i) && i >= 0 && i < n) && pair[0] !== pair[1]) { state.pair = pair; [$("first").value, $("second").value] = pair; }
    if (["add", "map"].includes(q.get("how"))) { state.how = q.get("how"); $("how").value = state.how; }
    if (Number(q.get("length")) > 0 && step().stretch !== null && step().stretch !== undefined) { state.factor = Number(q.get("length")); $("stretch").value = state.factor; }
    const where = (q.get("at") ?? "").split(",").map(Number);
    if (where.length === 2 && where.every(Number.isFinite)) state.pointer = raw().inputs ? held(where) : where;
    sync();
    if (q.has("cos") && Number.isFinite(Number(q.get("cos")))) { $("dial").value = q.get("cos"); dial(Number(q.get("cos"))); }
    show();
    return true;
  }
  // ----- controls
  const names = [...(real ? [["this model", -1]] : []), ...data.steps.map((s, k) => [`${k + 1} ${s.key}`, k])];
  $("steps").replaceChildren(...names.map(([words, k]) => { const b = document.createElement("button"); b.type = "button"; b.textContent = words; b.dataset.step = k; b.addEventListener("click", () => choose(k)); return b; }));
  $("reset").addEventListener("click", () => choose(state.step, state.scene));
  $("play").addEventListener("click", play);
  $("scene").addEventListener("change", (e) => {
    const length = state.factor;
    choose(state.step, Number(e.target.value));
    if (raw().inputs !== undefined) { state.factor = length; $("stretch").value = length; show(); }  // the same model over other inputs
  });
  $("how").addEventListener("change", (e) => { stop(); state.how = e.target.value; state.change = null; sync(); later(); });
  $("dial").addEventListener("input", (e) => { stop(); dial(Number(e.target.value)); });
  $("stretch").addEventListener("input", (e) => { stop(); state.factor = Number(e.target.value); if (state.change) dial(Number($("dial").value)); later(); });
  for (const [k, id] of [[0, "first"], [1, "second"]]) $(id).addEventListener("change", (e) => {
    stop();
    const was = state.pair[k], to = Number(e.target.value);
    state.pair[k] = to;
    if (state.pair[0] === state.pair[1]) { state.pair[1 - k] = was; $(id === "first" ? "second" : "first").value = was; }
    state.change = null; sync(); later();
  });
  if (real) {
    $("search").addEventListener("input", (e) => {
      if (around) $("names").replaceChildren(...around.offer(e.target.value).map((i) => { const o = option(around.typed(i), `row ${i}`); o.label = around.name(i); return o; }));
    });
    $("search").addEventListener("change", (e) => {
      if (!around || e.target.value === "") return;
      const typed = e.target.value, i = around.index(typed), near = i < 0 ? around.offer(typed, 4).map(around.name) : [];
      if (i >= 0 && around.has(i)) choose(-1, i + 1);
      else if (i < 0) $("story").textContent = `No label is called ${typed}${near.length ? `; there are ${near.slice(0, 3).join(", ")}${near.length > 3 ? ", …" : ""}` : ""}.`;
      else if (around.zero(i)) $("story").textContent = `The row of ${around.name(i)} is zero: it has no direction, and no neighbours.`;
      else $("story").textContent = `${around.name(i)} is row ${i}. This page carries ${around.count.toLocaleString("en")} of ${around.all.toLocaleString("en")} labels and not this one; ${real.command} makes one with all.`;
    });
  }
  const place = (e, canvas, reach) => { const b = canvas.getBoundingClientRect(), k = Math.min(b.width, b.height) / 2 / reach; return [(e.clientX - b.left - b.width / 2) / k, (b.top + b.height / 2 - e.clientY) / k]; };
  for (const type of ["pointermove", "pointerdown"]) for (const id of ["inputs", "other"]) $(id).addEventListener(type, (e) => {
    if (type === "pointermove" && e.pointerType !== "mouse" && !e.buttons) return;
    const r = raw().reach, p = place(e, $(id), r * 1.02);
    state.pointer = held(p);
    if (!playing) later();
  });
  let grip = null;
  $("rows").addEventListener("pointerdown", (e) => {
    if (link() === "ranking") return;
    stop();
    if (state.how === "map") { state.how = "add"; $("how").value = "add"; state.change = null; }
    grip = { from: place(e, $("rows"), show.reach), reach: show.reach, p: [...(state.change ?? g.none(raw().W.length)).p] };
    $("rows").setPointerCapture(e.pointerId);
  });
  const push = (p) => { state.change = { ...(state.change ?? g.none(raw().W.length)), p, S: null }; sync(); };
  $("rows").addEventListener("pointermove", (e) => {
    if (!grip) return;
    const at = place(e, $("rows"), grip.reach);
    push([grip.p[0] + at[0] - grip.from[0], grip.p[1] + at[1] - grip.from[1]]); later();
  });
  for (const end of ["pointerup", "pointercancel"]) $("rows").addEventListener(end, () => { grip = null; });
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  for (const id of ["inputs", "rows"]) $(id).addEventListener("keydown", (e) => {
    const k = keys[e.key];
    if (!k) return;
    e.preventDefault(); stop();
    if (id === "inputs") { const r = raw().reach; state.pointer = held(state.pointer.map((x, i) => x + k[i] * r / 25)); }
    else if (link() !== "ranking") { if (state.how === "map") { state.how = "add"; $("how").value = "add"; state.change = null; } const p = (state.change ?? g.none(raw().W.length)).p; push([p[0] + k[0] * show.reach / 25, p[1] + k[1] * show.reach / 25]); }
    later();
  });
  window.addEventListener("resize", later);
  window.addEventListener("hashchange", recall);
  view.dark.addEventListener("change", later);
  window.gonio = {
    data, state, frames: [], show, choose, dial: (c) => { stop(); $("dial").value = c; state.change = state.how === "map" ? g.mapped(scene(), state.pair, c) : g.smallest(scene(), state.pair, c); show(); },
    head: () => now()[1], scene, cosine: () => g.cosine(now()[1].G, ...state.pair), stored: () => g.cosine(first().s.G, ...state.pair), gram: () => now()[1].G,
    probabilities: () => { const [s, h] = now(); return g.probabilities(s, h, state.pointer, link()); }, largestChange, playing: () => playing !== null,
    winners: () => { const [s, h] = now(); return able(s, h, regions(s, h)); }, sets: () => g.cells(now()[1].slopes.map((w, i) => [w, now()[1].levels[i]]), raw().reach).map((c) => c.signs), added: () => now()[1].size, stop,
  };
  function start() { if (!recall()) { choose(real ? -1 : 0); if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) play(); } }
  const packed = $("labels-data").textContent.trim(), waits = packed !== "" && /step=model&scene=[1-9]/.test(location.hash);
  if (!waits) start();  // an address that names a label has to wait for it
  if (packed) unpack(packed).then((d) => { around = places(d, real); window.gonio.around = around; if (waits) start(); document.documentElement.dataset.ready = "yes"; });
})();
