// The table of every label: rows are drawn as they scroll into sight. `gonio` is what the tests and the other scripts use.
const gonio = { data: null, view: [], filter: "all", sort: null, down: false, query: "", row: -1 };
(() => {
  const $ = (id) => document.getElementById(id), HEIGHT = 30, SPARE = 12, PRINTED = 200;
  const box = $("rows-box"), head = $("rows-head"), body = $("rows-body");

  const place = (i) => i + (gonio.data.first ?? 0), titled = () => gonio.data.titles ?? ["label", "row"];  // rows count from 0, ranks from 1
  const shown = (i) => gonio.data.shown[i] ?? gonio.data.names[i];
  const digits = (x) => { let k = 4; while (k < 16 && Math.abs(x) < 1 && Math.abs(+x.toPrecision(k)) === 1) k++; return String(+x.toPrecision(k)); };  // a cosine below 1 stays below it
  const number = (x) => (x === null || x === undefined ? "" : Number.isInteger(x) && Math.abs(x) < 1e15 ? x.toLocaleString("en") : Math.abs(x) >= 1e-3 && Math.abs(x) < 1e5 ? digits(x) : x.toExponential(2));
  gonio.cosine = (x) => (x === null || x === undefined ? "undefined" : Math.abs(x) < 1 && Math.abs(+x.toFixed(4)) === 1 ? digits(x) : (Math.abs(x) < 5e-5 ? 0 : x).toFixed(4));
  const value = (c, i) => (c.words ? c.words[c.values[i]] : c.values[i]);
  const text = (c, i) => {
    const v = value(c, i);
    return v === null || v === undefined ? "" : c.kind === "label" ? shown(v) : c.kind === "word" ? v : number(v);
  };
  function order() {
    const d = gonio.data, q = gonio.query.toLowerCase();
    let out = gonio.filter === "all" ? [...d.names.keys()] : [...d.flags[gonio.filter]];
    if (/^#\d+$/.test(q)) out = out.filter((i) => place(i) === Number(q.slice(1)));
    else if (q) out = out.filter((i) => d.lower[i].includes(q));
    const c = gonio.sort === null ? null : d.columns[gonio.sort];
    if (gonio.sort === -1) out.sort((a, b) => (d.names[a] < d.names[b] ? -1 : d.names[a] > d.names[b] ? 1 : a - b));
    else if (c) {
      const key = c.kind === "label" ? (i) => { const v = c.values[i]; return v === null ? null : d.names[v]; } : (i) => value(c, i);
      out.sort((a, b) => { const x = key(a), y = key(b); return x === y ? a - b : x === null ? 1 : y === null ? -1 : x < y ? -1 : 1; });
    }
    if (gonio.down) { const known = c ? out.filter((i) => value(c, i) !== null) : out; out = known.reverse().concat(c ? out.filter((i) => value(c, i) === null) : []); }
    gonio.view = out;
  }
  function cell(words, c, full) {
    const td = document.createElement("td");
    td.textContent = words;
    if (c && c.kind === "number") td.className = "n";
    if (!c || c.kind === "label") td.classList.add("label");
    if (full && full.length > 24) td.title = full;
    return td;
  }
  function pad(height, columns) {
    const tr = document.createElement("tr"), td = document.createElement("td");
    tr.className = "pad"; tr.setAttribute("aria-hidden", "true");
    td.colSpan = columns; td.style.height = `${height}px`;
    tr.append(td);
    return tr;
  }
  function draw(all = false) {
    const d = gonio.data, n = gonio.view.length, width = d.columns.length + 2;
    const first = all ? 0 : Math.max(0, Math.floor(box.scrollTop / HEIGHT) - SPARE);
    const last = all ? Math.min(n, PRINTED) : Math.min(n, Math.ceil((box.scrollTop + box.clientHeight) / HEIGHT) + SPARE);
    const made = [pad(first * HEIGHT, width)];
    for (let k = first; k < last; k++) {
      const i = gonio.view[k], tr = document.createElement("tr");
      tr.dataset.row = i; tr.setAttribute("aria-rowindex", k + 2);
      if (i === gonio.row) tr.className = "on";
      const name = cell(shown(i), null, shown(i)), link = document.createElement("a");
      link.href = `#label=${encodeURIComponent(d.once[i] ? d.names[i] : "#" + place(i))}`; link.textContent = shown(i) || "(empty)";
      name.replaceChildren(link);
      tr.append(name, cell(String(place(i)), { kind: "number" }), ...d.columns.map((c) => cell(text(c, i), c, c.kind === "label" ? text(c, i) : "")));
      made.push(tr);
    }
    if (!all) made.push(pad((n - last) * HEIGHT, width));
    body.replaceChildren(...made);
    $("rows-table").setAttribute("aria-rowcount", n + 1);
    $("rows-count").textContent = all && n > PRINTED ? `the first ${PRINTED} of ${n.toLocaleString("en")} are printed` : `${n.toLocaleString("en")} shown`;
  }
  gonio.refresh = () => { order(); box.scrollTop = 0; draw(); };
  gonio.index = (typed) => {  // a label as typed: its very name, #12, or its readable form
    const d = gonio.data, m = /^#(\d+)$/.exec(typed);
    const i = [typed, typed.replace(/^ /, "Ġ"), typed.replace(/^ /, "▁")].map((x) => d.names.indexOf(x)).find((k) => k >= 0) ?? -1;  // tokenizers write a space so
    if (i >= 0) return i;
    if (m && Number(m[1]) - place(0) in d.names) return Number(m[1]) - place(0);
    return d.names.findIndex((_, k) => shown(k) === typed);
  };
  gonio.shown = shown; gonio.number = number;
  gonio.choose = (i) => {
    gonio.row = i;
    if (i < 0) { $("chosen").hidden = true; draw(); return; }
    if (!gonio.view.includes(i)) { gonio.filter = "all"; gonio.query = ""; $("search").value = ""; press(); order(); }
    box.scrollTop = Math.max(0, gonio.view.indexOf(i) * HEIGHT - box.clientHeight / 2);
    draw();
    $("chosen").hidden = false;
    $("chosen-name").textContent = shown(i) || "(empty)";
    const d = gonio.data, parts = d.columns.filter((c) => text(c, i) !== "").map((c) => `${c.title} ${text(c, i)}`);
    const flags = Object.entries(d.flags).filter(([, v]) => v.includes(i)).map(([k]) => k);
    $("chosen-says").textContent = [`${titled()[1]} ${place(i)}`, ...parts, ...flags].join(" · ");
    const near = gonio.neighbours(i);
    $("chosen-near").textContent = near.length ? `nearest by cosine${near[0].value === null ? "" : ` (${d.measure})`}: ` + near.map((x) => `${shown(x.j)} ${gonio.cosine(x.cosine)}${x.value === null ? "" : ` (${gonio.cosine(x.value)})`}`).join(", ") : "";
  };
  gonio.neighbours = (i) => {
    const n = gonio.data.near, out = [];
    for (let k = 0; n && k < n.k; k++) {
      const at = i * n.k + k;
      if (n.index[at] !== null) out.push({ j: n.index[at], cosine: n.cosine[at], value: n.value ? n.value[at] : null });
    }
    return out;
  };
  gonio.csv = () => {  // what is shown, every column; a text that a spreadsheet would take for a formula gets an apostrophe
    const d = gonio.data, quote = (x) => { let s = String(x ?? ""); if (typeof x === "string" && /^[=+\-@\t\r]/.test(s)) s = "'" + s; return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s; };
    const lines = [[...titled(), ...d.columns.map((c) => c.key)].join(",")];
    for (const i of gonio.view) lines.push([quote(d.names[i]), place(i), ...d.columns.map((c) => { const v = value(c, i); return quote(c.kind === "label" && v !== null ? d.names[v] : v); })].join(","));
    return lines.join("\r\n") + "\r\n";
  };
  gonio.copy = async (words, button) => {
    try { await navigator.clipboard.writeText(words); } catch {
      const t = document.createElement("textarea");
      t.value = words; document.body.append(t); t.select(); document.execCommand("copy"); t.remove();
    }
    const was = button.textContent;
    button.textContent = "copied"; setTimeout(() => { button.textContent = was; }, 900);
  };
  function save(name, words) {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob(["\ufeff" + words], { type: "text/csv" })); a.download = name; a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  }
  function press() {
    for (const b of document.querySelectorAll("[data-filter]")) if (b.hasAttribute("aria-pressed")) b.setAttribute("aria-pressed", String(b.dataset.filter === gonio.filter));
    for (const th of head.querySelectorAll("th")) th.setAttribute("aria-sort", String(gonio.sort) === th.dataset.sort ? (gonio.down ? "descending" : "ascending") : "none");
  }
  function hash() {
    const m = /^#label=(.*)$/.exec(location.hash);
    if (!m) return;
    let typed = m[1];
    try { typed = decodeURIComponent(typed); } catch { /* as it stands */ }
    gonio.choose(gonio.index(typed));
    if (gonio.row >= 0) $("labels").scrollIntoView();
  }
  for (const b of document.querySelectorAll("[data-copy]")) b.addEventListener("click", () => gonio.copy(b.dataset.copy, b));
  window.addEventListener("beforeprint", () => { for (const x of document.querySelectorAll("details")) { x.dataset.was = x.open; x.open = true; } });
  window.addEventListener("afterprint", () => { for (const x of document.querySelectorAll("details")) x.open = x.dataset.was === "true"; });
  if (!$("labels-data")) return;
  unpack($("labels-data").textContent).then((d) => {
    d.lower = d.names.map((x, i) => (x + " " + (d.shown[i] ?? "")).toLowerCase());
    const count = new Map();
    for (const x of d.names) count.set(x, (count.get(x) ?? 0) + 1);
    d.once = d.names.map((x) => x !== "" && !/^#\d+$/.test(x) && count.get(x) === 1);
    for (const c of d.columns) if (c.near) c.values = d.names.map((_, i) => d.near[c.near][i * d.near.k]);
    gonio.data = d;
    const titles = [[titled()[0], "-1", ""], [titled()[1], "null", "n"], ...d.columns.map((c, k) => [c.title, String(k), c.kind === "number" ? "n" : ""])];
    head.replaceChildren(...titles.map(([title, key, kind]) => {
      const th = document.createElement("th"), b = document.createElement("button");
      th.scope = "col"; th.dataset.sort = key; th.className = kind; b.type = "button"; b.textContent = title;
      b.addEventListener("click", () => {
        const to = key === "null" ? null : Number(key);
        [gonio.down, gonio.sort] = [gonio.sort === to ? !gonio.down : false, to];
        press(); gonio.refresh();
      });
      th.append(b);
      return th;
    }));
    for (const b of document.querySelectorAll("[data-filter]")) b.addEventListener("click", () => {
      gonio.filter = b.dataset.filter; gonio.query = $("search").value = ""; press(); gonio.refresh();
      if (!b.hasAttribute("aria-pressed")) $("labels").scrollIntoView();
    });
    let queued = false;
    const later = (f) => { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; f(); }); } };
    box.addEventListener("scroll", () => later(draw));
    window.addEventListener("resize", () => later(draw));
    $("search").addEventListener("input", () => { gonio.query = $("search").value; later(gonio.refresh); });
    body.addEventListener("click", (e) => { const tr = e.target.closest("[data-row]"); if (tr && !e.target.closest("a")) location.hash = tr.querySelector("a").getAttribute("href"); });
    for (const b of document.querySelectorAll("[data-copy-labels]")) b.addEventListener("click", () => gonio.copy((b.dataset.copyLabels === "view" ? gonio.view : d.flags[b.dataset.copyLabels]).map((i) => d.names[i]).join("\n"), b));
    for (const b of document.querySelectorAll("[data-csv]")) b.addEventListener("click", () => {
      const kept = [gonio.filter, gonio.query];
      if (b.dataset.csv !== "view") { [gonio.filter, gonio.query] = [b.dataset.csv, ""]; order(); }
      save(`${b.dataset.csv === "view" ? `${titled()[0]}s` : b.dataset.csv.replaceAll(" ", "-")}.csv`, gonio.csv());
      [gonio.filter, gonio.query] = kept; order();
    });
    window.addEventListener("beforeprint", () => draw(true));
    window.addEventListener("afterprint", () => draw());
    window.addEventListener("hashchange", hash);
    press(); gonio.refresh(); hash();
    document.documentElement.dataset.ready = "yes";
    document.dispatchEvent(new Event("gonio-ready"));
  });
})();
