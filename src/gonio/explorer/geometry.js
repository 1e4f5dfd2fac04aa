// Mathematics of the page. A scene is a head seen in a plane: W (labels x 2) in the plane, G the Gram matrix of the whole
// rows, bias. A change is one vector added to all rows, v = sum c_k g_k + p (p in the plane), or an invertible map of the
// plane of the chosen pair. Everything shown is computed from the changed rows: what stands still stands still by itself.
const geometry = (() => {
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const none = (n) => ({ c: new Array(n).fill(0), p: [0, 0], S: null });

  function scaled(scene, k, factor) {  // one row times a factor: another model, unless the factor is 1
    const G = scene.G ?? scene.W.map((a) => scene.W.map((b) => dot(a, b)));
    if (k === null || k === undefined || factor === 1) return { ...scene, G };
    const by = (i) => (i === k ? factor : 1);
    return { ...scene, W: scene.W.map((w, i) => [w[0] * by(i), w[1] * by(i)]), G: G.map((r, i) => r.map((x, j) => x * by(i) * by(j))) };
  }
  function added(s, x) {  // the vector: its part in the plane, its product with every row, its square, with the centre
    let inside = [...x.p], at0 = s.q0 ? dot(x.p, s.q0) : 0;
    const with_ = s.W.map((w) => dot(w, x.p));
    x.c.forEach((c, k) => {
      if (!c) return;
      inside[0] += c * s.W[k][0]; inside[1] += c * s.W[k][1];
      if (s.at0) at0 += c * s.at0[k];
      s.G[k].forEach((g, i) => { with_[i] += c * g; });
    });
    let square = dot(x.p, inside);
    x.c.forEach((c, k) => { if (c) square += c * with_[k]; });
    return { inside, with_, square: Math.max(0, square), at0 };
  }
  function basis(s, [a, b]) {  // orthonormal q1, q2 of the two rows: coordinates of every row, and q1, q2 in the plane
    const la = Math.sqrt(s.G[a][a]), along = s.G[a][b] / la, h = Math.sqrt(Math.max(0, s.G[b][b] - along * along));
    if (!(la > 0) || !(h > 1e-9 * la)) return null;
    const t = s.W.map((_, i) => [s.G[i][a] / la, (s.G[i][b] - along * s.G[i][a] / la) / h]);
    const P = [[0, 1].map((k) => s.W[a][k] / la), [0, 1].map((k) => (s.W[b][k] - along * s.W[a][k] / la) / h)];
    return { t, P, la, along, h, lb: Math.hypot(along, h) };
  }
  const times = (S, t) => [S[0][0] * t[0] + S[0][1] * t[1], S[1][0] * t[0] + S[1][1] * t[1]];
  const inverse = (S) => { const d = S[0][0] * S[1][1] - S[0][1] * S[1][0]; return [[S[1][1] / d, -S[0][1] / d], [-S[1][0] / d, S[0][0] / d]]; };

  function changed(s, x, pair) {  // the head after the change: arrows, Gram matrix, and each score as slope . input + level
    const level = (i) => (s.bias ? s.bias[i] : 0) + (s.at0 ? s.at0[i] : 0);
    if (x.S) {
      const b = basis(s, pair), back = inverse(x.S), St = b.t.map((t) => times(x.S, t));
      const plane = (t) => [b.P[0][0] * t[0] + b.P[1][0] * t[1], b.P[0][1] * t[0] + b.P[1][1] * t[1]];
      const arrows = s.W.map((w, i) => { const d = plane([St[i][0] - b.t[i][0], St[i][1] - b.t[i][1]]); return [w[0] + d[0], w[1] + d[1]]; });
      const G = s.G.map((r, i) => r.map((g, j) => g - dot(b.t[i], b.t[j]) + dot(St[i], St[j])));
      const slopes = s.W.map((w, i) => { const u = times(back, St[i]), d = plane([u[0] - b.t[i][0], u[1] - b.t[i][1]]); return [w[0] + d[0], w[1] + d[1]]; });
      return { arrows, G, slopes, levels: s.W.map((_, i) => level(i)), size: 0 };
    }
    const v = added(s, x);
    const arrows = s.W.map((w) => [w[0] + v.inside[0], w[1] + v.inside[1]]);
    const G = s.G.map((r, i) => r.map((g, j) => g + v.with_[i] + v.with_[j] + v.square));
    return { arrows, G, slopes: arrows, levels: s.W.map((_, i) => level(i) + v.at0), size: Math.sqrt(v.square) };
  }
  const cosine = (G, i, j) => { const n = Math.sqrt(G[i][i] * G[j][j]); return n > 0 ? Math.max(-1, Math.min(1, G[i][j] / n)) : NaN; };

  function smallest(s, [a, b], target) {  // the smallest vector that, added to all rows, gives the pair this cosine
    const x = none(s.W.length), L = Math.sqrt(Math.max(0, s.G[a][a] + s.G[b][b] - 2 * s.G[a][b]));
    if (!(L > 0)) return null;
    const mm = (s.G[a][a] + s.G[b][b] + 2 * s.G[a][b]) / 4, mu = (s.G[a][a] - s.G[b][b]) / (2 * L);
    const s0 = -mu, r0 = Math.sqrt(Math.max(0, mm - mu * mu));
    const put = (shift, e, r) => {  // v = -(m + shift u + r e)
      x.c[a] -= 0.5 + shift / L; x.c[b] -= 0.5 - shift / L;
      if (r) { e.c.forEach((c, k) => { x.c[k] -= r * c; }); x.p[0] -= r * e.p[0]; x.p[1] -= r * e.p[1]; }
      return x;
    };
    if (target <= -1) return put(Math.max(-0.49 * L, Math.min(0.49 * L, s0)), null, 0);
    if (target >= 1) return put(Math.abs(s0) > 0.51 * L ? s0 : (s0 < 0 ? -0.51 : 0.51) * L, null, 0);
    const e = none(s.W.length);
    if (r0 > 1e-9 * L) {  // e = (-m - s0 u) / r0, made of the two rows
      e.c[a] = -(0.5 + s0 / L) / r0; e.c[b] = -(0.5 - s0 / L) / r0;
    } else {  // the rows point away from each other: any direction across serves; one of the plane
      const d = [s.W[a][0] - s.W[b][0], s.W[a][1] - s.W[b][1]], n = Math.hypot(...d) || 1;
      e.p = [-d[1] / n, d[0] / n];
    }
    const angle = Math.acos(target), up = L / 2 / Math.tan(angle), radius = L / (2 * Math.sin(angle));
    const n = Math.hypot(s0, r0 - up) || 1;
    let across = s0 / n * radius, r = up + (r0 - up || (s0 ? 0 : 1)) / n * radius;
    if (!(r > 1e-3 * L)) {  // the least is not attained: a hundredth of the way off the nearer row
      const side = s0 < 0 ? -1 : 1, at = Math.atan2(-up, side * L / 2), by = 0.01 * L / radius;
      [across, r] = [at + by, at - by].map((t) => [radius * Math.cos(t), up + radius * Math.sin(t)]).sort((x, y) => y[1] - x[1])[0];
    }
    return put(across, e, r);
  }
  function mapped(s, pair, target) {  // the map of the pair's own plane that keeps both lengths and gives this cosine
    const b = basis(s, pair), c = Math.max(-0.9995, Math.min(0.9995, target));
    if (!b) return null;
    const back = inverse([[b.la, b.along], [0, b.h]]), to = [[b.la, c * b.lb], [0, Math.sqrt(1 - c * c) * b.lb]];
    const x = none(s.W.length);
    x.S = [0, 1].map((i) => [0, 1].map((j) => to[i][0] * back[0][j] + to[i][1] * back[1][j]));
    return x;
  }
  const cap = (s, z) => (s.softcap ? s.softcap * Math.tanh(z / s.softcap) : z);
  const scores = (s, h, x) => h.slopes.map((w, i) => cap(s, dot(w, x) + h.levels[i]));
  function probabilities(s, h, x, link) {
    const z = scores(s, h, x);
    if (link === "sigmoid") return z.map((t) => 1 / (1 + Math.exp(-t)));
    let top = -Infinity, total = 0;
    for (const t of z) top = Math.max(top, t);
    const e = z.map((t) => Math.exp(t - top));
    for (const t of e) total += t;
    return e.map((t) => t / total);
  }
  function clip(poly, w, c) {  // the part of a convex polygon where w . x + c >= 0
    const out = [];
    for (let k = 0; k < poly.length; k++) {
      const p = poly[k], q = poly[(k + 1) % poly.length], f = dot(w, p) + c, g = dot(w, q) + c;
      if (f >= 0) out.push(p);
      if ((f > 0 && g < 0) || (f < 0 && g > 0)) { const t = f / (f - g); out.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]); }
    }
    return out.length > 2 ? out : [];
  }
  const square = (r) => [[-r, -r], [r, -r], [r, r], [-r, r]];
  function winners(h, r, within = square(r)) {  // the region of each label, exactly: where no other score is above
    return h.slopes.map((w, i) => {
      let poly = within;
      for (let j = 0; j < h.slopes.length && poly.length; j++) if (j !== i) {
        const d = [w[0] - h.slopes[j][0], w[1] - h.slopes[j][1]], c = h.levels[i] - h.levels[j];
        if (d[0] === 0 && d[1] === 0) { if (c < 0 || (c === 0 && j < i)) poly = []; } else poly = clip(poly, d, c);
      }
      return area(poly) > 1e-9 * r * r ? poly : [];
    });
  }
  function cells(lines, r) {  // the square cut by lines [w, c]: each cell with its signs
    let out = [{ poly: square(r), signs: "" }];
    for (const [w, c] of lines) {
      const next = [];
      for (const cell of out) for (const [sign, k] of [["+", 1], ["-", -1]]) {
        const poly = clip(cell.poly, [k * w[0], k * w[1]], k * c);
        if (area(poly) > 1e-9 * r * r) next.push({ poly, signs: cell.signs + sign });
      }
      out = next;
    }
    return out;
  }
  function area(p) { let a = 0; for (let k = 0; k < p.length; k++) { const q = p[(k + 1) % p.length]; a += p[k][0] * q[1] - q[0] * p[k][1]; } return Math.abs(a) / 2; }
  function middle(p) { let x = 0, y = 0; for (const q of p) { x += q[0]; y += q[1]; } return [x / p.length, y / p.length]; }
  function ties(h) {  // the lines on which two labels are equal
    const out = [];
    for (let i = 0; i < h.slopes.length; i++) for (let j = i + 1; j < h.slopes.length; j++) out.push([[h.slopes[i][0] - h.slopes[j][0], h.slopes[i][1] - h.slopes[j][1]], h.levels[i] - h.levels[j], i, j]);
    return out;
  }
  function grid(r, n) { const out = []; for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) out.push([(2 * i / (n - 1) - 1) * r, (2 * j / (n - 1) - 1) * r]); return out; }
  function correlations(s, h, link, X) {  // of (centred) logits over some inputs
    const n = h.slopes.length, Z = X.map((x) => { const z = scores(s, h, x); if (link === "sigmoid") return z; const m = z.reduce((a, b) => a + b, 0) / n; return z.map((t) => t - m); });
    const mean = Array.from({ length: n }, (_, i) => Z.reduce((t, z) => t + z[i], 0) / Z.length);
    const C = Array.from({ length: n }, () => new Array(n).fill(0));
    for (const z of Z) for (let i = 0; i < n; i++) for (let j = i; j < n; j++) C[i][j] += (z[i] - mean[i]) * (z[j] - mean[j]);
    return C.map((r, i) => r.map((_, j) => { const c = i <= j ? C[i][j] : C[j][i], d = Math.sqrt(C[i][i] * C[j][j]); return d > 0 ? c / d : NaN; }));
  }
  return { dot, none, scaled, added, changed, cosine, smallest, mapped, scores, probabilities, winners, cells, ties, grid, correlations, area, middle };
})();
