/**
 * arena.js: the map of a run's working memory, from a profile: which value lies where, from its first step to its last.
 */

import { bytes, plural } from "collage/base/format.js";
import { axisBelow, axisLeft, chart, tells } from "collage/charts/chart.js";

const HEIGHT = 300;
const LEFT = 70;

const columns = [
  { head: "Value", cell: (row) => row.value ?? "workspace", number: true },
  { head: "Type", cell: (row) => row.type ?? "" },
  { head: "Offset", cell: (row) => bytes(row.offset), number: true },
  { head: "Size", cell: (row) => bytes(row.bytes), number: true },
  { head: "First step", cell: (row) => row.first_step, number: true },
  { head: "Last step", cell: (row) => row.last_step, number: true },
];

function arenaChart(arena, index) {
  const { values } = arena;
  const last = Math.max(...values.map((row) => row.last_step)) + 1;
  const draw = (svg, width, height) => {
    const x = d3
      .scaleLinear()
      .domain([0, last])
      .range([LEFT, width - 16]);
    const y = d3
      .scaleLinear()
      .domain([0, arena.bytes])
      .range([height - 44, 12]);
    axisBelow(svg, x, { y: height - 44, ticks: Math.min(last, 10), format: d3.format("d"), name: "step of the run" });
    axisLeft(svg, y, { x: LEFT, ticks: 5, format: bytes, length: width - LEFT - 16 });
    const rects = svg
      .selectAll("rect.value")
      .data(values)
      .join("rect")
      .attr("class", (row) => `value ${row.value === null ? "workspace" : ""}`)
      .attr("x", (row) => x(row.first_step))
      .attr("width", (row) => Math.max(1, x(row.last_step + 1) - x(row.first_step) - 1))
      .attr("y", (row) => y(row.offset + row.bytes))
      .attr("height", (row) => Math.max(1, y(row.offset) - y(row.offset + row.bytes) - 0.5));
    tells(rects, (row) => [
      row.value === null ? "workspace" : (row.type ?? `value ${row.value}`),
      `${bytes(row.bytes)} at ${bytes(row.offset)}`,
      `steps ${row.first_step} to ${row.last_step}`,
    ]);
  };
  const used = typeof arena.used_bytes === "number" ? `, ${bytes(arena.used_bytes)} in use at most` : "";
  const name = arena.plan ? `Working memory of ${arena.plan}` : "Working memory";
  return chart({
    id: `arena-${index}`,
    title: `${name}, ${bytes(arena.bytes)}${used}`,
    summary: plural(values.length, "value"),
    note: "Each value from the step that makes it to the last one that reads it, at its place in the arena.",
    height: HEIGHT,
    draw,
    columns,
    rows: values,
  });
}

/** Returns a chart for each arena of the profile that holds something. */
export function arenas(profile) {
  return (profile?.arenas ?? []).filter((arena) => arena.values.length > 0 && arena.bytes > 0).map(arenaChart);
}
