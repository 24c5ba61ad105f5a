/**
 * progress.js: how the search went: the best mix so far, the time that none can beat, and the gap between them.
 */

import { h } from "collage/base/dom.js";
import { axisSeconds, count, seconds, share } from "collage/base/format.js";
import { axisBelow, axisLeft, chart, tells } from "collage/charts/chart.js";

const HEIGHT = 280;
const LEFT = 70;
const elapsed = (value) => `${d3.format("~g")(value)} s`;

const columns = [
  { head: "Since the start", cell: (row) => elapsed(Number(row.seconds.toFixed(2))), number: true },
  { head: "Measured", cell: (row) => count(row.measured), number: true },
  { head: "Best mix", cell: (row) => seconds(row.best_seconds), number: true },
  { head: "None is faster than", cell: (row) => seconds(row.least_seconds), number: true },
  { head: "Gap", cell: (row) => share(row.gap), number: true },
];

function rowsOf(graph) {
  return (graph.row.progress ?? []).map((row) => ({
    ...row,
    gap:
      row.best_seconds && typeof row.least_seconds === "number"
        ? Math.max(0, 1 - row.least_seconds / row.best_seconds)
        : null,
  }));
}

function steps(rows, x, y, field, end) {
  const known = rows.filter((row) => typeof row[field] === "number");
  const line = d3
    .line()
    .x((row) => x(row.seconds))
    .y((row) => y(row[field]))
    .curve(d3.curveStepAfter);
  return known.length === 0 ? "" : line([...known, { ...known.at(-1), seconds: end }]);
}

function readOut(svg, rows, x, width, height) {
  const zones = svg
    .append("g")
    .selectAll("rect")
    .data(rows)
    .join("rect")
    .attr("class", "hit")
    .attr("y", 0)
    .attr("height", height);
  zones
    .attr("x", (row) => x(row.seconds))
    .attr("width", (row, i) => Math.max(1, (i + 1 < rows.length ? x(rows[i + 1].seconds) : width) - x(row.seconds)));
  tells(zones, (row) => [
    `after ${elapsed(Number(row.seconds.toFixed(2)))}`,
    `${count(row.measured)} measured`,
    `best mix ${seconds(row.best_seconds)}`,
    `none is faster than ${seconds(row.least_seconds)}`,
    `gap ${share(row.gap)}`,
  ]);
}

function bestChart(rows, end) {
  const bests = rows.map((row) => row.best_seconds).filter((value) => typeof value === "number");
  const draw = (svg, width, height) => {
    const x = d3
      .scaleLinear()
      .domain([0, end])
      .range([LEFT, width - 16]);
    const y = d3
      .scaleLinear()
      .domain([0, Math.max(...bests) * 1.08])
      .range([height - 44, 16]);
    axisBelow(svg, x, { y: height - 44, ticks: 6, format: elapsed, name: "since the search began" });
    axisLeft(svg, y, { x: LEFT, ticks: 5, format: axisSeconds, length: width - LEFT - 16 });
    const both = rows.filter((row) => row.gap !== null);
    const area = d3
      .area()
      .x((row) => x(row.seconds))
      .y0((row) => y(row.least_seconds))
      .y1((row) => y(row.best_seconds))
      .curve(d3.curveStepAfter);
    if (both.length)
      svg
        .append("path")
        .attr("class", "gap")
        .attr("d", area([...both, { ...both.at(-1), seconds: end }]));
    svg
      .append("path")
      .attr("class", "line best")
      .attr("d", steps(rows, x, y, "best_seconds", end));
    svg
      .append("path")
      .attr("class", "line least")
      .attr("d", steps(rows, x, y, "least_seconds", end));
    readOut(svg, rows, x, width - 16, height - 44);
  };
  const last = rows.at(-1);
  const legend = h(
    "ul",
    { class: "legend" },
    h(
      "li",
      {},
      h("span", { class: "swatch line-best", "aria-hidden": "true" }),
      ` best mix so far, at the end ${seconds(last.best_seconds)}`,
    ),
    h(
      "li",
      {},
      h("span", { class: "swatch line-least", "aria-hidden": "true" }),
      ` no mix is faster, at the end ${seconds(last.least_seconds)}`,
    ),
  );
  const note = "By sums of costs.";
  return chart({
    id: "progress",
    title: "Search",
    summary: `best mix at the end ${seconds(rows.at(-1).best_seconds)}`,
    note,
    legend,
    height: HEIGHT,
    draw,
    columns,
    rows,
  });
}

function gapChart(rows, end) {
  const known = rows.filter((row) => row.gap !== null);
  const draw = (svg, width, height) => {
    const x = d3
      .scaleLinear()
      .domain([0, end])
      .range([LEFT, width - 16]);
    const y = d3
      .scaleLinear()
      .domain([0, Math.max(...known.map((row) => row.gap)) * 1.1 || 0.01])
      .range([height - 44, 16]);
    axisBelow(svg, x, { y: height - 44, ticks: 6, format: elapsed, name: "since the search began" });
    axisLeft(svg, y, {
      x: LEFT,
      ticks: 5,
      format: (value) => `${d3.format("~g")(Number((100 * value).toPrecision(6)))} %`,
      length: width - LEFT - 16,
    });
    svg
      .append("path")
      .attr("class", "line best")
      .attr("d", steps(known, x, y, "gap", end));
    readOut(svg, rows, x, width - 16, height - 44);
  };
  return chart({
    id: "gap",
    title: "Proven gap",
    summary: `${share(known.at(-1).gap)} at the end`,
    note: `How much faster than the best mix so far another could still be; at the end ${share(known.at(-1).gap)}.`,
    height: HEIGHT,
    draw,
    columns,
    rows,
  });
}

/** Returns the charts of the search of `graph`; none where it was not recorded. */
export function progress(graph) {
  const rows = rowsOf(graph);
  if (!rows.some((row) => typeof row.best_seconds === "number")) return [];
  const end = rows.at(-1).seconds * 1.04 || 1;
  return [bestChart(rows, end), rows.some((row) => row.gap !== null) && gapChart(rows, end)].filter((figure) => figure);
}
