/**
 * play_off.js: all contenders as dots with intervals, one row each, and why the others could not take part.
 */

import { h } from "collage/base/dom.js";
import { axisSeconds, count, error, ratio, seconds, shorten } from "collage/base/format.js";
import { contenderName, mix } from "collage/base/words.js";
import { axisBelow, chart, logTicks, tells } from "collage/charts/chart.js";

const ROW = 34;
const LABELS = 310; // width of the names

const columns = [
  { head: "Contender", cell: (row) => contenderName(row) },
  { head: "Median", cell: (row) => seconds(row.p50_seconds), number: true },
  { head: "Least", cell: (row) => seconds(row.min_seconds), number: true },
  { head: "90th percentile", cell: (row) => seconds(row.p90_seconds), number: true },
  { head: "To the winner", cell: (row) => ratio(row.to_winner), number: true },
  { head: "Sum of costs", cell: (row) => seconds(row.estimated_seconds || null), number: true },
  { head: "Runs", cell: (row) => count(row.samples), number: true },
  { head: "Largest error", cell: (row) => error(row.max_error), number: true },
  { head: "Partitions", cell: (row) => mix(row.partitions) },
];

/** The rounds of a contender, but those that something else on the machine slowed down by far. */
function roundsOf(row) {
  const all = [...(row.rounds?.first ?? []), ...(row.rounds?.final ?? [])];
  return all.filter((round) => round <= 1.3 * (row.p90_seconds || row.p50_seconds));
}

/** Where the line of a row ends: {low, high}. */
function extentOf(row) {
  const rounds = roundsOf(row);
  return {
    low: Math.min(row.min_seconds || row.p50_seconds, ...rounds),
    high: Math.max(row.p90_seconds || row.p50_seconds, ...rounds),
  };
}

/** Dots need no axis from 0: it begins where differences can be seen. */
function scaleOf(rows, left, right) {
  const extents = rows.map(extentOf);
  const least = Math.min(...extents.map(({ low }) => low));
  const most = Math.max(...extents.map(({ high }) => high));
  if (most / least > 6)
    return d3
      .scaleLog()
      .domain([least * 0.9, most * 1.1])
      .range([left, right]);
  const margin = Math.max(0.15 * (most - least), 0.02 * least);
  return d3
    .scaleLinear()
    .domain([Math.max(0, least - margin), most + margin])
    .range([left, right]);
}

function drawRow(group, row, x, winner) {
  const y = ROW / 2;
  group
    .append("text")
    .attr("class", "label")
    .attr("x", LABELS - 14)
    .attr("y", y + 4)
    .attr("text-anchor", "end")
    .text(shorten(contenderName(row), 44));
  const low = row.min_seconds || row.p50_seconds;
  const high = row.p90_seconds || row.p50_seconds;
  for (const round of roundsOf(row)) {
    group
      .append("line")
      .attr("class", "round")
      .attr("x1", x(round))
      .attr("x2", x(round))
      .attr("y1", y - 7)
      .attr("y2", y + 7);
  }
  group.append("line").attr("class", "interval").attr("x1", x(low)).attr("x2", x(high)).attr("y1", y).attr("y2", y);
  for (const end of [low, high])
    group
      .append("line")
      .attr("class", "interval")
      .attr("x1", x(end))
      .attr("x2", x(end))
      .attr("y1", y - 4)
      .attr("y2", y + 4);
  group
    .append("circle")
    .attr("cx", x(row.p50_seconds))
    .attr("cy", y)
    .attr("r", row === winner ? 7 : 5);
  group
    .append("text")
    .attr("class", "value")
    .attr("x", x(extentOf(row).high) + 12)
    .attr("y", y + 4)
    .text(`${seconds(row.p50_seconds)}${row === winner ? "" : ` · ${ratio(row.to_winner)}`}`);
}

/** Returns the chart of the play-off of `graph`, and a list of contenders that did not run. */
export function playOff(graph) {
  const rows = graph.contenders
    .filter((row) => !row.failure && row.p50_seconds)
    .sort((a, b) => a.p50_seconds - b.p50_seconds);
  const failed = graph.contenders.filter((row) => row.failure);
  if (rows.length === 0) return [h("p", { class: "note" }, "There was no play-off."), notRun(failed)];
  const winner = rows.find((row) => row.name === graph.row.winner) ?? rows[0];
  rows.sort((a, b) => (b === winner) - (a === winner)); // it may have won by a score in which its median is not the least
  const draw = (svg, width) => {
    const x = scaleOf(rows, LABELS, width - 130);
    axisBelow(svg, x, {
      y: rows.length * ROW + 4,
      ticks: Math.max(2, Math.floor((width - LABELS) / 130)),
      tickValues: x.base ? logTicks(x.domain()) : undefined,
      format: axisSeconds,
      length: rows.length * ROW,
      name: x.base ? "time of a run, logarithmic" : `time of a run, from ${seconds(x.domain()[0])}`,
    });
    const groups = svg
      .selectAll("g.row")
      .data(rows)
      .join("g")
      .attr("class", (row) => `row${row === winner ? " winner" : ""}`)
      .attr("transform", (_, i) => `translate(0 ${i * ROW})`);
    groups.append("rect").attr("class", "hit").attr("width", width).attr("height", ROW);
    groups.each(function each(row) {
      drawRow(d3.select(this), row, x, winner);
    });
    tells(groups, (row) => [
      contenderName(row),
      `median ${seconds(row.p50_seconds)} of ${count(row.samples)} runs`,
      `least ${seconds(row.min_seconds)}, 90th percentile ${seconds(row.p90_seconds)}`,
      mix(row.partitions),
    ]);
  };
  const summary = rows.map((row) => `${contenderName(row)} ${seconds(row.p50_seconds)}`).join(", ");
  const note =
    "Whole models, run in turns. Dot: median. Line: from the fastest run to the 90th percentile. Ticks: single rounds.";
  return [
    chart({ id: "play-off", title: "Play-off", summary, note, height: rows.length * ROW + 44, draw, columns, rows }),
    notRun(failed),
  ];
}

function notRun(failed) {
  if (failed.length === 0) return null;
  return h(
    "details",
    { class: "note" },
    h("summary", {}, `${failed.length} could not take part`),
    h(
      "ul",
      {},
      failed.map((row) => h("li", {}, h("strong", {}, contenderName(row)), `: ${row.failure}`)),
    ),
  );
}
