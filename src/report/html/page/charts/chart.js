/**
 * chart.js: what charts share: a figure with a title, a drawing that fills its width, the same numbers as a table, and a
 * box that tells about the mark under the pointer.
 */
import { h, table } from "collage/base/dom.js";

const tip = h("div", { class: "tip", role: "status", hidden: true });

function showTip(event, lines) {
  if (!tip.isConnected) document.body.append(tip);
  tip.replaceChildren(...lines.map((line, i) => h(i === 0 ? "strong" : "span", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
  const below = event.clientY + 16 + height < document.documentElement.clientHeight;
  tip.style.transform = `translate(${Math.max(8, left)}px, ${below ? event.clientY + 16 : event.clientY - height - 10}px)`;
}

/** Has marks of the D3 selection `marks` tell `lines(datum)` under the pointer. */
export function tells(marks, lines) {
  marks
    .on("pointermove", (datum) => showTip(d3.event, lines(datum)))
    .on("pointerleave", () => {
      tip.hidden = true;
    });
}

/**
 * Returns a figure. `draw(svg, width)` draws into an empty SVG, a D3 selection, of the given `height`, and again whenever
 * the width changes. `summary` is what screen readers say in place of the picture; `columns` and `rows` are the numbers.
 */
export function chart({ id, title, summary, height, draw, columns, rows, note, legend }) {
  const canvas = h("div", { class: "canvas", style: `height:${height}px` });
  const numbers = h("details", { class: "numbers" }, h("summary", {}, "As a table"));
  numbers.addEventListener(
    "toggle",
    () =>
      numbers.open &&
      numbers.childElementCount === 1 &&
      numbers.append(h("div", { class: "scroll" }, table(columns, rows))),
  );
  const figure = h(
    "figure",
    { id, class: "chart" },
    h("figcaption", {}, h("h3", {}, title), note && h("p", { class: "muted" }, note)),
    legend,
    canvas,
    numbers,
  );
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(canvas.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    canvas.replaceChildren();
    const svg = d3.select(canvas).append("svg").attr("role", "img").attr("aria-label", `${title}. ${summary}`);
    draw(svg.attr("width", width).attr("height", height), width, height);
  }).observe(canvas);
  return figure;
}

/** Draws an axis of `svg` with the scale at y = `y`, with a grid of `length` upwards, and the quantity's name. */
export function axisBelow(svg, scale, { y, ticks, format, length = 0, name, tickValues }) {
  const axis = d3.axisBottom(scale).tickSizeOuter(0).tickPadding(6).tickFormat(format);
  tickValues ? axis.tickValues(tickValues) : axis.ticks(ticks);
  const group = svg
    .append("g")
    .attr("class", "axis")
    .attr("transform", `translate(0 ${y})`)
    .call(axis.tickSize(-length));
  const [from, to] = scale.range();
  if (name)
    group
      .append("text")
      .attr("class", "name")
      .attr("x", Math.max(from, to))
      .attr("y", 32)
      .attr("text-anchor", "end")
      .text(name);
}

/** Draws an axis at the left, at x = `x`, with a grid of `length` to the right. */
export function axisLeft(svg, scale, { x, ticks, format, length = 0, name, tickValues }) {
  const axis = d3.axisLeft(scale).tickSizeOuter(0).tickPadding(6).tickFormat(format);
  tickValues ? axis.tickValues(tickValues) : axis.ticks(ticks);
  const group = svg
    .append("g")
    .attr("class", "axis")
    .attr("transform", `translate(${x} 0)`)
    .call(axis.tickSize(-length));
  const [from, to] = scale.range();
  if (name)
    group
      .append("text")
      .attr("class", "name")
      .attr("x", 0)
      .attr("y", Math.min(from, to) - 10)
      .attr("text-anchor", "start")
      .text(name);
}

/** Powers of ten, and their doubles and fives where there are few, that label a logarithmic scale's domain. */
export function logTicks([least, most]) {
  const decades = Math.log10(most / least);
  const some = decades > 0.7 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  const factors = decades > 3 ? [1] : decades > 1.4 ? [1, 3] : some;
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); ++power) {
    for (const factor of factors) ticks.push(factor * 10 ** power);
  }
  return ticks.filter((tick) => tick >= least * 0.999 && tick <= most * 1.001);
}
