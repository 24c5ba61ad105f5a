/**
 * minimap.js: the whole graph in a small picture, with a frame around what the large one shows. Pressing it goes there.
 */
import { h } from "collage/base/dom.js";
import { colourOf, resolved } from "collage/base/palette.js";

const WIDTH = 96;
const MOST_DISTORTED = 12; // how much wider than high the picture of a tall graph may be drawn

function coloursOf(graph) {
  const of = new Map();
  for (const toolchain of new Set(graph.partitions.map((partition) => partition.toolchain)))
    of.set(toolchain, resolved(colourOf(toolchain)));
  return { of, port: resolved("muted"), frame: resolved("accent") };
}

/** Returns the small picture of a GraphView. For pointers only: keyboard and screen readers have the large one. */
export function minimap(view) {
  const canvas = h("canvas", { class: "minimap", "aria-hidden": "true" });
  let picture = null; // the boxes, drawn once for each arrangement
  let placed = null;
  let scale = { x: 1, y: 1 };
  let colours = null;

  const paintBoxes = (height) => {
    placed = view.placed;
    scale = { x: WIDTH / placed.width, y: height / placed.height };
    if (scale.x < scale.y) scale.y = Math.min(scale.y, MOST_DISTORTED * scale.x);
    else scale.x = Math.min(scale.x, MOST_DISTORTED * scale.y);
    picture = document.createElement("canvas");
    [picture.width, picture.height] = [WIDTH * devicePixelRatio, height * devicePixelRatio];
    const context = picture.getContext("2d");
    context.scale(devicePixelRatio, devicePixelRatio);
    colours = coloursOf(view.graph);
    const { of, port } = colours;
    for (const box of placed.boxes) {
      context.fillStyle =
        box.item.kind === "partition" ? of.get(view.graph.partitions[box.item.partition].toolchain) : port;
      context.fillRect(
        (box.x - box.w / 2) * scale.x,
        (box.y - box.h / 2) * scale.y,
        Math.max(1, box.w * scale.x),
        Math.max(1, box.h * scale.y),
      );
    }
  };

  const paint = () => {
    const { width, height: seen } = view.size();
    const isAllInView = view.placed.width * view.transform.k <= width && view.placed.height * view.transform.k <= seen;
    canvas.style.visibility = isAllInView ? "hidden" : "visible";
    const height = canvas.clientHeight;
    if (height === 0) return;
    if (placed !== view.placed) paintBoxes(height);
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    context.scale(devicePixelRatio, devicePixelRatio);
    const { left, top, right, bottom } = view.view();
    context.strokeStyle = colours.frame;
    context.lineWidth = 1.5;
    context.strokeRect(left * scale.x, top * scale.y, (right - left) * scale.x, (bottom - top) * scale.y);
  };

  const go = (event) => {
    if (event.buttons === 0) return;
    const { left, top } = canvas.getBoundingClientRect();
    const { width, height } = view.size();
    const k = view.transform.k;
    view.moveTo(
      width / 2 - (k * (event.clientX - left)) / scale.x,
      height / 2 - (k * (event.clientY - top)) / scale.y,
      k,
    );
  };
  canvas.addEventListener("pointerdown", go);
  canvas.addEventListener("pointermove", go);
  const repaint = () => {
    placed = null;
    paint();
  };
  new ResizeObserver(repaint).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  view.listeners.push(paint);
  return canvas;
}
