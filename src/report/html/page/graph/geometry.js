/**
 * geometry.js: where the boxes and edges of a graph are, given which partitions are unfolded. All places are Graphviz's, moved
 * by stretch.js.
 *
 * A layout (src/report/html/report_layout.h) has `items` with `kind`, `x`, `y` (centres), `w`, `h`; `edges` with `from` and
 * `to` (items), `nodes` (whose results flow) and `points`, the control points of cubic curves as x, y, x, y, …; and `inside`,
 * for each partition, the like of its own.
 */
import { stretch } from "collage/graph/stretch.js";

export const HEADER = 46; // height of an unfolded partition's title, in the units of the layout
const MARGIN = 12;

/** The size of an unfolded partition. */
function unfoldedSize(inside, item) {
  return { w: Math.max(item.w, inside.width + 2 * MARGIN), h: HEADER + inside.height + MARGIN };
}

/** Where the result of `node` enters or leaves an unfolded box, as a share of its width; null if it has no port for it. */
function portShare(box, ports, node) {
  const port = ports.find((candidate) => candidate.node === node);
  return port ? ((box.w - box.inside.width) / 2 + port.x) / box.w : null;
}

/** The x of an edge's end at `box`: at the port of the value, else where Graphviz put it, relative to the box. */
function endX(box, item, x, ports, nodes) {
  if (box.inside) {
    for (const node of nodes) {
      const share = portShare(box, ports, node);
      if (share !== null) return box.x - box.w / 2 + share * box.w;
    }
  }
  return box.x + ((x - item.x) / item.w) * box.w;
}

function pathOf(points) {
  const parts = [`M${points[0]} ${points[1]}`];
  for (let i = 2; i + 5 < points.length; i += 6) {
    parts.push(`C${points.slice(i, i + 6).join(" ")}`);
  }
  return parts.join("");
}

function placedEdge(edge, index, layout, boxes, toX, toY) {
  const points = edge.points.map((value, i) => Math.round(10 * (i % 2 ? toY(value) : toX(value))) / 10);
  const from = boxes[edge.from];
  const to = boxes[edge.to];
  const last = points.length - 2;
  const move = (end, neighbour, x, y) => {
    points[neighbour] += x - points[end];
    points[end] = x;
    points[end + 1] = y;
  };
  const outputs = from.inside?.outputs ?? [];
  const inputs = to.inside?.inputs ?? [];
  move(0, 2, endX(from, layout.items[edge.from], edge.points[0], outputs, edge.nodes), from.y + from.h / 2);
  move(last, last - 2, endX(to, layout.items[edge.to], edge.points[last], inputs, edge.nodes), to.y - to.h / 2);
  const xs = points.filter((_, i) => i % 2 === 0);
  const ys = points.filter((_, i) => i % 2 === 1);
  return {
    index,
    edge,
    d: pathOf(points),
    end: [points[last], points[last + 1]],
    left: Math.min(...xs),
    right: Math.max(...xs),
    top: Math.min(...ys),
    bottom: Math.max(...ys),
  };
}

/** Returns {boxes, edges, width, height} of `layout` with the partitions of the set `unfolded` open. */
export function place(layout, unfolded) {
  const sizes = layout.items.map((item) => {
    const open = item.kind === "partition" && unfolded.has(item.partition);
    const inside = open ? layout.inside[item.partition] : null;
    return { inside, ...(inside ? unfoldedSize(inside, item) : { w: item.w, h: item.h }) };
  });
  const rooms = (axis, extent) =>
    layout.items.flatMap((item, i) =>
      sizes[i].inside
        ? [{ begin: item[axis] - item[extent] / 2, end: item[axis] + item[extent] / 2, size: sizes[i][extent] }]
        : [],
    );
  const toX = stretch(rooms("x", "w"));
  const toY = stretch(rooms("y", "h"));
  const boxes = layout.items.map((item, index) => ({
    index,
    item,
    inside: sizes[index].inside,
    w: sizes[index].w,
    h: sizes[index].h,
    x: (toX(item.x - item.w / 2) + toX(item.x + item.w / 2)) / 2,
    y: (toY(item.y - item.h / 2) + toY(item.y + item.h / 2)) / 2,
  }));
  const edges = layout.edges.map((edge, index) => placedEdge(edge, index, layout, boxes, toX, toY));
  return { boxes, edges, width: toX(layout.width), height: toY(layout.height) };
}

/** The path of an edge inside of a partition, whose points need no moving. */
export function insidePath(edge) {
  return pathOf(edge.points);
}

/** The place of the inside's origin relative to the left upper corner of its box. */
export function insideOffset(box) {
  return { x: (box.w - box.inside.width) / 2, y: HEADER };
}

/** Whether something from `left` to `right`, `top` to `bottom` meets `view`. */
export function meets(view, left, right, top, bottom) {
  return right >= view.left && left <= view.right && bottom >= view.top && top <= view.bottom;
}
