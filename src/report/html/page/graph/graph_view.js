/**
 * graph_view.js: the picture of a graph: zoom, pan, folding, keyboard, and what is drawn of it. Only what is in view is in
 * the document, so graphs of thousands of nodes stay fast.
 */

import { h } from "collage/base/dom.js";
import { onSelect, select } from "collage/base/selection.js";
import { meets, place } from "collage/graph/geometry.js";
import { drawBoxes, drawEdges } from "collage/graph/graph_draw.js";
import { TINTS } from "collage/graph/tints.js";

const FAR = 0.38; // zoom below which texts cannot be read and are not drawn
const MOST_ZOOM = 3;
const LEAST_FIT = 0.04; // a box is then 8 pixels wide

function makeSvg(element) {
  const svg = d3.select(element).append("svg").attr("class", "graph").attr("role", "group").attr("tabindex", 0);
  const arrow = svg.append("defs").append("marker").attr("id", "arrow").attr("viewBox", "0 0 8 8");
  arrow
    .attr("refX", 7)
    .attr("refY", 4)
    .attr("markerWidth", 7)
    .attr("markerHeight", 7)
    .attr("orient", "auto")
    .append("path")
    .attr("d", "M0 1L7 4L0 7z");
  return svg;
}

/** The picture of one graph in `element`. */
export class GraphView {
  /** `announce` is told what screen readers should say. */
  constructor(element, graph, announce) {
    this.graph = graph;
    this.announce = announce;
    this.unfolded = new Set();
    this.matches = null; // of a search: a set of nodes
    this.listeners = [];
    this.tint = TINTS[0].tint;
    this.svg = makeSvg(element);
    this.svg.attr(
      "aria-label",
      `Graph of ${graph.partitions.length} partitions. Arrow keys go from one to the next, Enter unfolds.`,
    );
    this.world = this.svg.append("g").attr("class", "world");
    this.edgeLayer = this.world.append("g").attr("class", "edges");
    this.boxLayer = this.world.append("g").attr("class", "boxes");
    this.transform = d3.zoomIdentity;
    this.focused = 0;
    this.bindZoom();
    this.bindPointer();
    this.bindKeys();
    onSelect((selection, origin) => this.showSelection(selection, origin));
    this.arrange();
  }

  bindZoom() {
    this.zoom = d3
      .zoom()
      .scaleExtent([LEAST_FIT / 2, MOST_ZOOM])
      .clickDistance(4)
      .on("zoom", () => {
        this.transform = d3.event.transform;
        this.world.attr("transform", this.transform);
        this.refresh();
      });
    // The wheel scrolls the page, as everywhere, unless Ctrl is pressed or the picture was pressed before.
    this.zoom.filter(
      () =>
        !d3.event.button &&
        (d3.event.type !== "wheel" || d3.event.ctrlKey || this.svg.node().contains(document.activeElement)),
    );
    this.svg.call(this.zoom).on("dblclick.zoom", null);
  }

  bindPointer() {
    const element = this.svg.node();
    element.addEventListener("click", (event) => {
      const box = event.target.closest("[data-box]");
      if (!box) return;
      const { item } = this.placed.boxes[Number(box.dataset.box)];
      const node = event.target.closest("[data-node]");
      this.focusBox(Number(box.dataset.box));
      if (event.target.closest(".toggle")) this.toggle(item.partition);
      else this.selectItem(item, node ? Number(node.dataset.node) : null);
    });
    element.addEventListener("dblclick", (event) => {
      const box = event.target.closest("[data-box]");
      const item = box && this.placed.boxes[Number(box.dataset.box)].item;
      if (item?.kind === "partition" && !event.target.closest("[data-node]")) this.toggle(item.partition);
    });
  }

  selectItem(item, node = null) {
    const partition = item.kind === "partition" ? this.graph.partitions[item.partition] : null;
    select({ graph: this.graph, partition, node: partition ? node : item.node }, this);
  }

  bindKeys() {
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    this.svg.node().addEventListener("keydown", (event) => {
      const { item } = this.placed.boxes[this.focused];
      if (steps[event.key]) this.goTo(this.neighbour(...steps[event.key]));
      else if (event.key === "Enter" || event.key === " ")
        item.kind === "partition" ? this.toggle(item.partition) : this.selectItem(item);
      else if (event.key === "+" || event.key === "=") this.zoom.scaleBy(this.svg, 1.3);
      else if (event.key === "-") this.zoom.scaleBy(this.svg, 1 / 1.3);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** The box nearest to the focused one in a direction; that one if there is none. */
  neighbour(dx, dy) {
    const here = this.placed.boxes[this.focused];
    let best = this.focused;
    let least = Infinity;
    for (const box of this.placed.boxes) {
      const ahead = dx * (box.x - here.x) + dy * (box.y - here.y);
      const aside = Math.abs(dy * (box.x - here.x)) + Math.abs(dx * (box.y - here.y));
      if (ahead > 1 && ahead + 2 * aside < least) [best, least] = [box.index, ahead + 2 * aside];
    }
    return best;
  }

  /** Moves keyboard's focus to a box, selects it and brings it into view. */
  goTo(index) {
    this.reveal(this.placed.boxes[index]);
    this.focusBox(index);
    this.selectItem(this.placed.boxes[index].item);
  }

  focusBox(index) {
    this.focused = index;
    this.boxLayer.selectAll("g.item").attr("tabindex", (box) => (box.index === index ? 0 : -1));
    this.boxLayer.select(`[data-box="${index}"]`).node()?.focus({ preventScroll: true });
  }

  /** Unfolds or folds a partition; its title stays where it was on the screen. */
  toggle(partition) {
    const index = this.graph.layout.items.findIndex(
      (item) => item.kind === "partition" && item.partition === partition,
    );
    const before = this.placed.boxes[index];
    if (this.unfolded.has(partition)) this.unfolded.delete(partition);
    else if (this.graph.layout.inside[partition]) this.unfolded.add(partition);
    else return;
    this.arrange();
    const after = this.placed.boxes[index];
    const dx = before.x - before.w / 2 - (after.x - after.w / 2);
    const dy = before.y - before.h / 2 - (after.y - after.h / 2);
    this.zoom.translateBy(this.svg, dx, dy);
    this.focusBox(index);
    const open = this.unfolded.has(partition);
    this.announce(`Partition ${partition} ${open ? "unfolded" : "folded"}`);
  }

  /** Colours partitions by one of TINTS. */
  colourBy({ tint }) {
    this.tint = tint;
    this.drawn = null;
    this.refresh();
  }

  unfoldAll() {
    for (const [partition, inside] of this.graph.layout.inside.entries()) if (inside) this.unfolded.add(partition);
    this.arrange();
    this.fit();
    this.announce("All partitions unfolded");
  }

  foldAll() {
    this.unfolded.clear();
    this.arrange();
    this.fit();
    this.announce("All partitions folded");
  }

  /** Places everything anew. */
  arrange() {
    this.placed = place(this.graph.layout, this.unfolded);
    this.boxOf = new Map(
      this.placed.boxes.filter((box) => box.item.kind === "partition").map((box) => [box.item.partition, box]),
    );
    this.drawn = null;
    this.refresh();
  }

  size() {
    const { width, height } = this.svg.node().getBoundingClientRect();
    return { width: width || 1, height: height || 1 };
  }

  /** What is in view, in the layout's units, and `more` times as much on each side. */
  view(more = 0) {
    const { width, height } = this.size();
    const [left, top] = this.transform.invert([-more * width, -more * height]);
    const [right, bottom] = this.transform.invert([(1 + more) * width, (1 + more) * height]);
    return { left, top, right, bottom };
  }

  /** Draws what is in view, unless it is drawn already. */
  refresh() {
    const now = this.view();
    this.svg.classed("far", this.transform.k < FAR);
    const { drawn } = this;
    if (
      !drawn ||
      now.left < drawn.left ||
      now.right > drawn.right ||
      now.top < drawn.top ||
      now.bottom > drawn.bottom
    ) {
      this.drawn = this.view(0.6);
      const view = this.drawn;
      const boxes = this.placed.boxes.filter((b) =>
        meets(view, b.x - b.w / 2, b.x + b.w / 2, b.y - b.h / 2, b.y + b.h / 2),
      );
      const edges = this.placed.edges.filter((edge) => meets(view, edge.left, edge.right, edge.top, edge.bottom));
      drawEdges(this.edgeLayer, edges, this.graph.layout, this.graph);
      drawBoxes(this.boxLayer, boxes, this.graph, this.tint);
      this.mark();
    }
    for (const listener of this.listeners) listener();
  }

  /** Shows all of the graph, or of one that would be a mere line the beginning. */
  fit() {
    const { width, height } = this.size();
    const k = Math.max(LEAST_FIT, Math.min(1, (width - 40) / this.placed.width, (height - 40) / this.placed.height));
    const place = (size, length) => (k * length <= size ? (size - k * length) / 2 : 20);
    this.moveTo(place(width, this.placed.width), place(height, this.placed.height), k);
  }

  /** Shows the graph's beginning in a size that can be read. */
  start() {
    const { width } = this.size();
    const k = Math.max(0.55, Math.min(1, (width - 40) / this.placed.width));
    const first = this.placed.boxes.reduce((a, b) => (b.y < a.y ? b : a), this.placed.boxes[0]);
    const x = k * this.placed.width <= width ? (width - k * this.placed.width) / 2 : width / 2 - k * first.x;
    this.moveTo(x, 16, k);
  }

  moveTo(x, y, k) {
    this.zoom.transform(this.svg, d3.zoomIdentity.translate(x, y).scale(k));
  }

  /** Brings the centre of a box into view, at a size that can be read. */
  reveal(box, node = null) {
    const { width, height } = this.size();
    const k = Math.max(0.7, this.transform.k);
    const inner = box.inside?.nodes.find((place) => place.node === node);
    const x = inner ? box.x - box.inside.width / 2 + inner.x : box.x;
    const y = inner ? box.y - box.h / 2 + 46 + inner.y : box.y - box.h / 2 + Math.min(box.h, height / k) / 2;
    this.moveTo(width / 2 - k * x, height / 2 - k * y, k);
  }

  showSelection(selection, origin) {
    this.selection = selection?.graph === this.graph ? selection : null;
    if (this.selection?.partition && origin !== this) {
      const box = this.boxOf.get(this.selection.partition.index);
      if (box) {
        this.focused = box.index;
        this.reveal(box, this.selection.node);
      }
    }
    this.mark();
  }

  /** Marks what a search found: a set of nodes, or null. */
  showMatches(nodes) {
    this.matches = nodes;
    this.mark();
  }

  /** Sets the classes that say what is selected and what was found. */
  mark() {
    const { selection, matches, graph } = this;
    const found = (box) =>
      (box.item.kind === "partition" ? graph.partitions[box.item.partition].nodes : [box.item.node]).some((node) =>
        matches.has(node),
      );
    const number = selection?.partition?.index;
    const isSelected = ({ item }) =>
      item.kind === "partition"
        ? item.partition === number
        : selection !== null && selection !== undefined && number === undefined && item.node === selection.node;
    this.svg.classed("searching", matches !== null);
    this.boxLayer
      .selectAll("g.item")
      .classed("selected", isSelected)
      .classed("match", (box) => matches !== null && found(box))
      .attr("tabindex", (box) => (box.index === this.focused ? 0 : -1));
    const node = (element) => Number(element.getAttribute("data-node"));
    this.boxLayer
      .selectAll("g.node")
      .classed("selected", function test() {
        return selection?.node === node(this);
      })
      .classed("match", function test() {
        return matches?.has(node(this)) ?? false;
      });
    const touches = ({ edge }) =>
      number !== undefined &&
      [edge.from, edge.to].some(
        (end) => graph.layout.items[end].kind === "partition" && graph.layout.items[end].partition === number,
      );
    this.edgeLayer.selectAll("path.edge").classed("touched", touches);
  }
}

/** Says that there is no picture, and why. */
export function noPicture(reason) {
  return h("p", { class: "note" }, `No picture of the graph: ${reason}.`);
}
