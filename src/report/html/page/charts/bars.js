/**
 * bars.js: where the time goes, by toolchain and by operator.
 */

import { axisSeconds, operators, plural, seconds, share, shorten } from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { axisBelow, chart, tells } from "collage/charts/chart.js";

const ROW = 28;
const LABELS = 190;
const MOST_ROWS = 14;

/** Sums of seconds by `key` of each partition, the greatest first: {name, seconds, partitions, unknown, toolchains}. */
function sums(graph, key) {
  const rows = new Map();
  for (const partition of graph.partitions) {
    const name = key(partition);
    if (!rows.has(name)) rows.set(name, { name, seconds: 0, partitions: 0, unknown: 0, toolchains: new Map() });
    const row = rows.get(name);
    row.seconds += partition.seconds ?? 0;
    row.partitions += 1;
    row.unknown += partition.seconds === null ? 1 : 0;
    row.toolchains.set(partition.toolchain, (row.toolchains.get(partition.toolchain) ?? 0) + (partition.seconds ?? 0));
  }
  return [...rows.values()].sort((a, b) => b.seconds - a.seconds);
}

/** The rows after the first ones in one. */
function withRest(rows) {
  if (rows.length <= MOST_ROWS) return rows;
  const rest = {
    name: `${rows.length - MOST_ROWS + 1} others`,
    isRest: true,
    seconds: 0,
    partitions: 0,
    unknown: 0,
    toolchains: new Map(),
  };
  for (const row of rows.slice(MOST_ROWS - 1)) {
    for (const field of ["seconds", "partitions", "unknown"]) rest[field] += row[field];
    for (const [name, time] of row.toolchains) rest.toolchains.set(name, (rest.toolchains.get(name) ?? 0) + time);
  }
  return [...rows.slice(0, MOST_ROWS - 1), rest];
}

function barChart({ id, title, rows, all, note }) {
  const shown = withRest(rows);
  const draw = (svg, width) => {
    const x = d3
      .scaleLinear()
      .domain([0, Math.max(...shown.map((row) => (row.isRest ? 0 : row.seconds))) || 1])
      .range([LABELS, width - 130]);
    axisBelow(svg, x, {
      y: shown.length * ROW + 2,
      ticks: Math.max(2, Math.floor(width / 160)),
      format: axisSeconds,
      length: shown.length * ROW,
    });
    const groups = svg
      .selectAll("g.row")
      .data(shown)
      .join("g")
      .attr("class", "row")
      .attr("transform", (_, i) => `translate(0 ${i * ROW})`);
    groups.append("rect").attr("class", "hit").attr("width", width).attr("height", ROW);
    groups
      .append("text")
      .attr("class", "label")
      .attr("x", LABELS - 10)
      .attr("y", ROW / 2 + 4)
      .attr("text-anchor", "end")
      .text((row) => shorten(row.name, 25));
    groups.each(function each(row) {
      if (row.isRest) return; // together they may be more than any single one
      let from = 0;
      for (const [toolchain, time] of [...row.toolchains].sort((a, b) => b[1] - a[1])) {
        d3.select(this)
          .append("rect")
          .attr("class", toolchain === "" ? "between" : colourOf(toolchain))
          .attr("x", x(from))
          .attr("y", 5)
          .attr("width", Math.max(0, x(from + time) - x(from)))
          .attr("height", ROW - 10);
        from += time;
      }
    });
    groups
      .append("text")
      .attr("class", "value")
      .attr("x", (row) => x(row.isRest ? 0 : row.seconds) + 8)
      .attr("y", ROW / 2 + 4)
      .text((row) => `${seconds(row.seconds)} · ${share(row.seconds / all)}`);
    tells(groups, (row) => [
      row.name,
      `${seconds(row.seconds)}, ${share(row.seconds / all)}`,
      plural(row.partitions, "partition"),
      ...(row.unknown ? [`${row.unknown} of unknown cost`] : []),
      ...[...row.toolchains].filter(([name]) => name).map(([name, time]) => `${name} ${seconds(time)}`),
    ]);
  };
  const columns = [
    { head: title, cell: (row) => row.name },
    { head: "Cost", cell: (row) => seconds(row.seconds), number: true },
    { head: "Share", cell: (row) => share(row.seconds / all), number: true },
    { head: "Partitions", cell: (row) => row.partitions, number: true },
    { head: "Of unknown cost", cell: (row) => row.unknown, number: true },
  ];
  const summary = rows
    .slice(0, 5)
    .map((row) => `${row.name} ${share(row.seconds / all)}`)
    .join(", ");
  return chart({ id, title, summary, note, height: shown.length * ROW + 30, draw, columns, rows });
}

/** How many costs are in no sum. */
function unknownText(graph) {
  const unknown = graph.partitions.filter((partition) => partition.seconds === null).length;
  return unknown === 0 ? "" : ` ${plural(unknown, "partition")} of unknown cost are not in them.`;
}

/** Returns two charts of the costs in `graph`. */
export function timeBars(graph) {
  const between = graph.partitions.reduce((sum, partition) => sum + partition.betweenSeconds, 0);
  const byToolchain = sums(graph, (partition) => partition.toolchain);
  if (between > 0)
    byToolchain.push({
      name: "between partitions",
      seconds: between,
      partitions: 0,
      unknown: 0,
      toolchains: new Map([["", between]]),
    });
  const all = byToolchain.reduce((sum, row) => sum + row.seconds, 0) || 1;
  const byOperators = sums(graph, (partition) => operators(partition.operators));
  return [
    barChart({
      id: "by-toolchain",
      title: "By toolchain",
      rows: byToolchain.sort((a, b) => b.seconds - a.seconds),
      all,
      note: `Sums of the costs of partitions.${unknownText(graph)}`,
    }),
    barChart({
      id: "by-operator",
      title: "By operators",
      rows: byOperators,
      all,
      note: "Partitions that compute the same operators together, coloured by toolchain.",
    }),
  ];
}
