/**
 * stretch.js: makes room for unfolded partitions. Graphviz laid out the folded graph; along each axis, the stretch of it that
 * an unfolded box takes becomes longer, and all behind it moves on. Order is kept, so boxes that did not overlap still do not.
 *
 *     folded      ┤ a ├─┤ p ├─┤ b ├
 *     p unfolded  ┤ a ├─┤   p with its nodes   ├─┤ b ├
 */

/**
 * Returns where a place on the axis goes. Each of `rooms` is {begin, end, size}: the places from `begin` to `end` become
 * at least `size` long. Rooms that overlap share their length.
 */
export function stretch(rooms) {
  const widening = rooms.filter((room) => room.end > room.begin && room.size > room.end - room.begin);
  if (widening.length === 0) return (place) => place;
  const cuts = [...new Set(widening.flatMap((room) => [room.begin, room.end]))].sort((a, b) => a - b);
  const factors = cuts.slice(1).map((end, i) => {
    const over = widening.filter((room) => room.begin <= cuts[i] && room.end >= end);
    return Math.max(1, ...over.map((room) => room.size / (room.end - room.begin)));
  });
  const starts = [cuts[0]];
  for (const [i, factor] of factors.entries()) starts.push(starts[i] + factor * (cuts[i + 1] - cuts[i]));
  return (place) => {
    if (place <= cuts[0]) return place;
    const last = cuts.length - 1;
    if (place >= cuts[last]) return starts[last] + place - cuts[last];
    let low = 0;
    let high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (cuts[middle] <= place) low = middle;
      else high = middle;
    }
    return starts[low] + factors[low] * (place - cuts[low]);
  };
}
