// The threshold slider of a check: what a score lets through, from counts at every step of the slider.
(() => {
  const $ = (id) => document.getElementById(id);
  if (!$("curve-data")) return;
  const d = JSON.parse($("curve-data").textContent), slider = $("threshold");
  const percent = (x) => (x === null ? "undefined" : `${(100 * x).toFixed(x > 0 && x < 0.01 ? 3 : 1)} %`);
  window.gonioThreshold = (k) => {
    const judged = d.relevant !== undefined, kept = judged ? d.returned[k] : 0;
    return { at: d.at[k], alarms: d.random[k], precision: judged && kept ? d.relevant[k] / kept : null, recall: judged && d.total ? d.relevant[k] / d.total : null };
  };
  function show() {
    const k = Number(slider.value), x = window.gonioThreshold(k);
    $("at").textContent = x.at.toPrecision(4); slider.setAttribute("aria-valuetext", x.at.toPrecision(4));
    $("alarms").textContent = percent(x.alarms);
    if (d.relevant !== undefined) { $("precision").textContent = percent(x.precision); $("recall").textContent = percent(x.recall); }
    const line = $("curve-line"), place = 20 + 400 * k / (d.at.length - 1);
    line.setAttribute("x1", place); line.setAttribute("x2", place);
  }
  slider.addEventListener("input", () => requestAnimationFrame(show));
  show();
})();
