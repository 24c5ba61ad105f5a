/**
 * graph_section.js: the picture of the graph with its tools: search, folding, zoom, legend, and the small picture beside it.
 */
import { h, refill, swatch } from "collage/base/dom.js";
import { colourOf } from "collage/base/palette.js";
import { GraphView, noPicture } from "collage/graph/graph_view.js";
import { minimap } from "collage/graph/minimap.js";
import { searchBox } from "collage/graph/search.js";
import { TINTS } from "collage/graph/tints.js";

function tool(id, text, label, run) {
  return h("button", { type: "button", class: "plain", id, title: label, "aria-label": label, onclick: run }, text);
}

function tools(view, announce, choice) {
  return h(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "Graph" },
    searchBox(view, announce),
    h("span", { class: "spacer" }),
    choice,
    tool("unfold", "Unfold all", "Unfold all partitions", () => view.unfoldAll()),
    tool("fold", "Fold all", "Fold all partitions", () => view.foldAll()),
    tool("zoom-out", "−", "Zoom out", () => view.zoom.scaleBy(view.svg, 1 / 1.4)),
    tool("zoom-in", "+", "Zoom in", () => view.zoom.scaleBy(view.svg, 1.4)),
    tool("fit", "Show all", "Show the whole graph", () => view.fit()),
  );
}

/** Returns {choice, legend}: which fact colours are of, and what they mean. */
function colouring(view) {
  const { graph } = view;
  const holder = h("div", {});
  const options = TINTS.map(({ name }, index) => h("option", { value: index }, name));
  const show = (index) => {
    const { cold, hot } = TINTS[index];
    view.colourBy(TINTS[index]);
    refill(
      holder,
      cold
        ? h("p", { class: "legend" }, cold, h("span", { class: "ramp", "aria-hidden": "true" }), hot(graph))
        : legend(graph),
    );
  };
  const choice = h(
    "select",
    { id: "colouring", "aria-label": "What colours mean", onchange: ({ target }) => show(Number(target.value)) },
    options,
  );
  refill(holder, legend(graph));
  return { choice: h("label", {}, h("span", { class: "muted" }, "Colour "), choice), legend: holder };
}

function legend(graph) {
  const names = [...new Set(graph.partitions.map((partition) => partition.toolchain))];
  const converts = graph.partitions.some((partition) => partition.row.conversions?.length);
  return h(
    "ul",
    { class: "legend" },
    names.map((name) => h("li", {}, swatch(colourOf(name)), ` ${name}`)),
    converts &&
      h("li", {}, h("span", { class: "swatch converts", "aria-hidden": "true" }), " converted to another format"),
    h(
      "li",
      { class: "muted" },
      "Bar: share of the time. ▸ or Enter unfolds. Drag to move; Ctrl and wheel, or a press and then the wheel, to zoom.",
    ),
  );
}

/** Returns {content, view}; view is null where there is no picture. */
export function graphSection(graph, announce) {
  if (graph.partitions.length === 0)
    return { content: noPicture(graph.row.no_alternatives ?? "its partitions are not known"), view: null };
  if (!graph.layout || graph.layout.failure)
    return { content: noPicture(graph.layout?.failure ?? "it was not laid out"), view: null };
  const frame = h("div", { class: "frame" });
  const content = h("div", { class: "graph-section" });
  const view = new GraphView(frame, graph, announce);
  const colours = colouring(view);
  content.append(tools(view, announce, colours.choice), frame, colours.legend);
  frame.append(minimap(view));
  let began = false;
  new ResizeObserver(() => {
    if (!began && frame.clientWidth > 0) {
      began = true;
      view.start();
    } else view.refresh();
  }).observe(frame);
  return { content, view };
}
