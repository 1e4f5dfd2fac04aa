// Which inputs can reach the head, in the plane: those with x >= 0, of a box, or of a disc about 0; null is all of them.
// Regions are cut to them. Who can win is told of the whole set, not of the part that is drawn.
const inputSets = (() => {
  const far = [1, 30, 1000];  // times the reach of the picture: regions that begin farther out are met as well
  const turn = Array.from({ length: 180 }, (_, k) => [Math.cos(k * Math.PI / 90), Math.sin(k * Math.PI / 90)]);
  const square = (low, high) => [[low, low], [high, low], [high, high], [low, high]];
  const round = (set) => set && set.kind === "disc";
  const ends = (set, reach) => (!set || round(set) ? [-reach, reach] : set.kind === "box" ? [-set.size, set.size] : [0, reach]);
  const edge = (set, reach) => (round(set) ? turn.map(([x, y]) => [set.size * x, set.size * y]) : square(...ends(set, reach)));
  const contains = (set, x) => (round(set) ? Math.hypot(...x) <= set.size : x.every((t) => t >= ends(set, Infinity)[0] && t <= ends(set, Infinity)[1]));
  function nearest(set, x, reach) {  // the input of the set, and of the picture, next to a point
    const [low, high] = ends(set, reach), p = x.map((t) => Math.max(low, Math.min(high, t))), over = round(set) ? Math.hypot(...p) / set.size : 1;
    return over > 1 ? p.map((t) => t / over) : p;
  }
  function distance(poly) {  // of a convex polygon, counter-clockwise, from 0
    let inside = true, least = Infinity;
    poly.forEach((p, k) => {
      const q = poly[(k + 1) % poly.length], d = [q[0] - p[0], q[1] - p[1]], l = geometry.dot(d, d);
      if (p[0] * q[1] - p[1] * q[0] < 0) inside = false;
      const t = l > 0 ? Math.max(0, Math.min(1, -geometry.dot(p, d) / l)) : 0;
      least = Math.min(least, Math.hypot(p[0] + t * d[0], p[1] + t * d[1]));
    });
    return inside ? 0 : least;
  }
  function able(h, set, reach) {  // the labels that win at some input of the whole set
    const looks = set && set.kind !== "nonnegative" ? [1] : far;
    const met = looks.map((k) => geometry.winners(h, k * reach, round(set) ? undefined : square(...ends(set, k * reach))));
    return h.slopes.map((_, i) => i).filter((i) => met.some((m) => m[i].length && (!round(set) || distance(m[i]) < set.size)));
  }
  return { edge, contains, nearest, able };
})();
