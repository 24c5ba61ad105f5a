/**
 * graph_draw.js: draws boxes and edges of a graph as SVG, by D3's joins, so that a change touches only what is new.
 */

import * as format from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { insideOffset, insidePath } from "collage/graph/geometry.js";

const BOX_LETTERS = 20; // that fit into a folded box beside its number
const NODE_LETTERS = 21; // and into a node's

const px = (value) => Math.round(10 * value) / 10;

/** The end of a long name, which in names like paths tells most. */
function ending(text, most) {
  return text.length <= most ? text : `…${text.slice(1 - most)}`;
}

function text(parent, cls, x, y, content) {
  return parent.append("text").attr("class", cls).attr("x", x).attr("y", y).text(content);
}

/** What screen readers say of a box. */
export function boxLabel(box, graph) {
  const { item } = box;
  if (item.kind !== "partition")
    return `${item.kind} ${graph.nodeName(item.node)}, ${graph.nodes[item.node].type?.[0] ?? ""}`;
  const partition = graph.partitions[item.partition];
  return (
    `partition ${partition.index}, ${partition.toolchain}, ${format.operators(partition.operators)}, ` +
    `${format.seconds(partition.seconds)}, ${format.share(partition.share)} of the time, ${format.plural(partition.nodes.length, "node")}`
  );
}

function drawPort(group, box, graph) {
  const left = px(-box.w / 2);
  const top = px(-box.h / 2);
  group
    .append("rect")
    .attr("class", "box")
    .attr("x", left)
    .attr("y", top)
    .attr("width", px(box.w))
    .attr("height", px(box.h))
    .attr("rx", px(box.h / 2));
  text(group, "title", 0, -2, format.shorten(graph.nodeName(box.item.node), BOX_LETTERS)).attr("text-anchor", "middle");
  text(group, "sub", 0, 13, format.shorten(graph.nodes[box.item.node].type?.[0] ?? "", 28)).attr(
    "text-anchor",
    "middle",
  );
}

function drawPartition(group, box, graph, greatest) {
  const partition = graph.partitions[box.item.partition];
  const [left, top, w, h] = [-box.w / 2, -box.h / 2, box.w, box.h].map(px);
  group
    .append("rect")
    .attr("class", "box")
    .attr("x", left)
    .attr("y", top)
    .attr("width", w)
    .attr("height", h)
    .attr("rx", 6);
  group
    .append("path")
    .attr("class", "stripe")
    .attr("d", `M${left + 6} ${top}h2v${h}h-2a6 6 0 0 1-6-6v${12 - h}a6 6 0 0 1 6-6z`);
  text(
    group,
    "title",
    left + 16,
    top + 19,
    `${partition.index}  ${format.shorten(format.operators(partition.operators), BOX_LETTERS)}`,
  );
  text(
    group,
    "sub",
    left + 16,
    top + 35,
    `${format.shorten(partition.toolchain, 14)} · ${format.seconds(partition.seconds)} · ${format.share(partition.share)}`,
  );
  text(group, "toggle", left + w - 18, top + 19, box.inside ? "▾" : "▸")
    .append("title")
    .text(box.inside ? "Fold" : "Unfold");
  if (partition.share !== null && greatest > 0) {
    const length = px(Math.max(1, ((w - 24) * partition.share) / greatest));
    group
      .append("rect")
      .attr("class", "bar")
      .attr("x", left + 16)
      .attr("y", top + 41)
      .attr("width", length)
      .attr("height", 3);
  }
  if (box.inside) drawInside(group.append("g").attr("class", "inside"), box, graph);
}

function drawInside(group, box, graph) {
  const offset = insideOffset(box);
  group.attr("transform", `translate(${px(offset.x - box.w / 2)} ${px(offset.y - box.h / 2)})`);
  for (const edge of box.inside.edges)
    group.append("path").attr("class", "edge").attr("d", insidePath(edge)).attr("marker-end", "url(#arrow)");
  for (const port of [...box.inside.inputs, ...box.inside.outputs]) {
    group
      .append("circle")
      .attr("class", "port")
      .attr("cx", px(port.x))
      .attr("cy", px(port.y))
      .attr("r", 3)
      .append("title")
      .text(graph.nodeName(port.node));
  }
  for (const place of box.inside.nodes) {
    const node = graph.nodes[place.node];
    const item = group
      .append("g")
      .attr("class", "node")
      .attr("data-node", place.node)
      .attr("tabindex", -1)
      .attr("role", "button");
    item.attr("aria-label", `node ${graph.nodeName(place.node)}, ${node.op}, ${(node.type ?? []).join(", ")}`);
    item.attr("transform", `translate(${px(place.x)} ${px(place.y)})`);
    item
      .append("rect")
      .attr("x", px(-place.w / 2))
      .attr("y", px(-place.h / 2))
      .attr("width", px(place.w))
      .attr("height", px(place.h))
      .attr("rx", 4);
    text(item, "title", 0, -3, format.shorten(format.operators(node.op ?? node.kind), NODE_LETTERS)).attr(
      "text-anchor",
      "middle",
    );
    text(item, "sub", 0, 12, ending(node.name || (node.type ?? []).join(", "), NODE_LETTERS + 4)).attr(
      "text-anchor",
      "middle",
    );
    item.append("title").text(`${graph.nodeName(place.node)}\n${node.op}\n${(node.type ?? []).join("\n")}`);
  }
}

function drawBox(box, graph, greatest) {
  const group = d3.select(this);
  if (box.item.kind === "partition") drawPartition(group, box, graph, greatest);
  else drawPort(group, box, graph);
}

/** The key of a box in joins: an unfolded one is another drawing. */
const boxKey = (box) => `${box.index}${box.inside ? "u" : ""}`;

/** Shows exactly `boxes` in `layer`. `graph` has their partitions and nodes; `tint` returns a partition's colour or null. */
export function drawBoxes(layer, boxes, graph, tint) {
  const greatest = Math.max(0, ...graph.partitions.map((partition) => partition.share ?? 0));
  layer
    .selectAll("g.item")
    .data(boxes, boxKey)
    .join((enter) =>
      enter
        .append("g")
        .attr("class", ({ item, inside }) =>
          item.kind === "partition"
            ? `item partition ${inside ? "open" : "closed"} ${colourOf(graph.partitions[item.partition].toolchain)}`
            : `item port ${item.kind}`,
        )
        .attr("id", (box) => `box-${graph.index}-${box.index}`)
        .attr("data-box", (box) => box.index)
        .attr("role", "button")
        .attr("tabindex", -1)
        .attr("aria-label", (box) => boxLabel(box, graph))
        .attr("aria-expanded", (box) => (box.item.kind === "partition" ? String(box.inside !== null) : null))
        .each(function draw(box) {
          drawBox.call(this, box, graph, greatest);
        }),
    )
    .attr("transform", (box) => `translate(${px(box.x)} ${px(box.y)})`)
    .style("--c", ({ item }) => (item.kind === "partition" ? tint(graph.partitions[item.partition], graph) : null));
}

/** Whether a partition has one of these values converted to another format before it runs. */
function converts(edge, layout, graph) {
  const target = layout.items[edge.to];
  if (target.kind !== "partition") return false;
  const conversions = graph.partitions[target.partition].row.conversions ?? [];
  return conversions.some((conversion) => edge.nodes.includes(conversion.node));
}

/** Shows exactly `edges` in `layer`. */
export function drawEdges(layer, edges, layout, graph) {
  const title = ({ edge }) =>
    edge.nodes.map((node) => `${graph.nodeName(node)}: ${(graph.nodes[node].type ?? []).join(", ")}`).join("\n");
  layer
    .selectAll("path.edge")
    .data(edges, (edge) => edge.index)
    .join((enter) => {
      const path = enter
        .append("path")
        .attr("class", ({ edge }) => `edge${converts(edge, layout, graph) ? " converts" : ""}`);
      path
        .attr("data-edge", (edge) => edge.index)
        .append("title")
        .text((edge) => title(edge));
      return path.attr("marker-end", "url(#arrow)");
    })
    .attr("d", (edge) => edge.d);
}
