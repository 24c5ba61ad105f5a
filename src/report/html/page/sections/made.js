/**
 * made.js: how the executable was made: command, settings, versions, what the compilation did when.
 */

import { facts, h, table } from "collage/base/dom.js";
import { bytes, count, plural } from "collage/base/format.js";
import { axisBelow, chart, tells } from "collage/charts/chart.js";

const ROW = 26;
const LABELS = 150;
const long = (value) => (typeof value === "number" ? `${value.toFixed(value < 10 ? 2 : 1)} s` : "?");

function phases(explanation) {
  const rows = explanation.json.timeline ?? [];
  if (rows.length === 0) return null;
  const end = Math.max(...rows.map((row) => row.end_seconds));
  const name = (row) =>
    row.graph === null || row.graph === undefined || explanation.graphs.length < 2
      ? row.phase
      : `${row.phase}, graph ${row.graph}`;
  const names = [...new Set(rows.map(name))];
  const draw = (svg, width) => {
    const x = d3
      .scaleLinear()
      .domain([0, end])
      .range([LABELS, width - 70]);
    axisBelow(svg, x, {
      y: names.length * ROW + 2,
      ticks: Math.max(3, Math.floor(width / 160)),
      format: (value) => `${value} s`,
      length: names.length * ROW,
    });
    for (const [i, phase] of names.entries()) {
      svg
        .append("text")
        .attr("class", "label")
        .attr("x", LABELS - 10)
        .attr("y", i * ROW + 17)
        .attr("text-anchor", "end")
        .text(phase);
    }
    const bars = svg
      .selectAll("rect.phase")
      .data(rows)
      .join("rect")
      .attr("class", "phase")
      .attr("x", (row) => x(row.begin_seconds))
      .attr("y", (row) => names.indexOf(name(row)) * ROW + 5)
      .attr("height", ROW - 10)
      .attr("width", (row) => Math.max(1, x(row.end_seconds) - x(row.begin_seconds)));
    tells(bars, (row) => [
      name(row),
      `${long(row.end_seconds - row.begin_seconds)}, from ${long(row.begin_seconds)} to ${long(row.end_seconds)}`,
    ]);
    svg
      .selectAll("text.length")
      .data(rows)
      .join("text")
      .attr("class", "value length")
      .attr("x", (row) => x(row.end_seconds) + 6)
      .attr("y", (row) => names.indexOf(name(row)) * ROW + 17)
      .text((row) => long(row.end_seconds - row.begin_seconds));
  };
  const columns = [
    { head: "Phase", cell: (row) => name(row) },
    { head: "Begin", cell: (row) => long(row.begin_seconds), number: true },
    { head: "Length", cell: (row) => long(row.end_seconds - row.begin_seconds), number: true },
  ];
  return chart({
    id: "phases",
    title: "Phases of the compilation",
    summary: names.join(", "),
    height: names.length * ROW + 28,
    draw,
    columns,
    rows,
  });
}

function searchText(search) {
  if (!search) return null;
  const parts = [
    `${count(search.candidates)} candidates`,
    `${count(search.variants)} with formats`,
    `${count(search.measured)} measured`,
    `${count(search.from_database)} known from the database`,
    `${count(search.failed)} failed`,
  ];
  return parts.join(", ") + (search.budget_spent ? "; the budget was spent" : "");
}

function toolchains(report) {
  const rows = (report.toolchains ?? []).filter((row) => row.takes_part ?? row.available);
  if (rows.length === 0) return null;
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h("h3", {}, "Toolchains that took part")),
    h(
      "div",
      { class: "scroll" },
      table(
        [
          { head: "Name", cell: (row) => row.name },
          { head: "Version", cell: (row) => row.version ?? "?" },
          { head: "Licence of its runtime", cell: (row) => row.license ?? "?" },
          { head: "As", cell: (row) => (row.takes_part_as ?? []).join(", ") },
        ],
        rows,
      ),
    ),
  );
}

/** "threads=2, budget=10": settings that are not as by default. */
function settingsText(settings) {
  const text = Object.entries(settings ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
  return text || "all as by default";
}

/** Returns the section's content. */
export function made(explanation) {
  const { json, report } = explanation;
  const machine = json.machine ?? {};
  const caches = [
    machine.near_bytes && `near cache ${bytes(machine.near_bytes)}`,
    machine.shared_bytes && `shared cache ${bytes(machine.shared_bytes)}`,
  ]
    .filter((text) => text)
    .join(", ");
  return [
    facts([
      ["Settings", settingsText(json.settings)],
      ["Collage", json.collage],
      [
        "Machine",
        machine.cpu
          ? `${machine.cpu}, ${machine.isa}, ${plural(machine.processors, "processor")}${caches ? `, ${caches}` : ""}`
          : report.machine,
      ],
      ["Threads", count(report.threads)],
      ["Search", searchText(report.search)],
      ["Took", report.seconds ? long(report.seconds.total) : null],
      ["Graphs", explanation.graphs.length > 1 ? explanation.graphs.map((graph) => graph.row.name).join(", ") : null],
      [
        "Digest",
        explanation.graphs
          .map((graph) => graph.row.hash)
          .filter((hash) => hash)
          .join(", "),
      ],
    ]),
    phases(explanation),
    toolchains(report),
  ];
}
