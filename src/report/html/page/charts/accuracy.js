/**
 * accuracy.js: measured against estimated: whole contenders against the sums of their costs, and, with a profile, partitions in
 * a run against their costs alone.
 */

import { axisSeconds, difference, seconds, share } from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { select } from "collage/base/selection.js";
import { contenderName } from "collage/base/words.js";
import { axisBelow, axisLeft, chart, logTicks, tells } from "collage/charts/chart.js";

const HEIGHT = 330;

function pointsOf(graph) {
  const ofPartitions = graph.partitions
    .filter((partition) => partition.seconds && partition.profile?.p50_seconds)
    .map((partition) => ({
      name: `partition ${partition.index}: ${partition.toolchain}`,
      colour: colourOf(partition.toolchain),
      partition,
      estimated: partition.seconds,
      measured: partition.profile.p50_seconds,
    }));
  if (ofPartitions.length > 0) return ofPartitions;
  return graph.contenders
    .filter((contender) => contender.estimated_seconds && contender.p50_seconds && !contender.failure)
    .map((contender) => ({
      name: contenderName(contender),
      colour: contender.single ? colourOf(contender.name) : "accent",
      estimated: contender.estimated_seconds,
      measured: contender.p50_seconds,
    }));
}

/** Returns the chart, or null where nothing was both estimated and measured. */
export function accuracy(graph) {
  const points = pointsOf(graph);
  if (points.length === 0) return null;
  const isProfile = Boolean(points[0].partition);
  const values = points.flatMap((point) => [point.estimated, point.measured]);
  const domain = [Math.min(...values) * 0.8, Math.max(...values) * 1.25];
  const draw = (svg, width, height) => {
    const x = d3
      .scaleLog()
      .domain(domain)
      .range([70, width - 20]);
    const y = d3
      .scaleLog()
      .domain(domain)
      .range([height - 44, 26]);
    axisBelow(svg, x, {
      y: height - 44,
      tickValues: logTicks(domain),
      format: axisSeconds,
      length: height - 70,
      name: isProfile ? "cost, measured alone" : "sum of costs",
    });
    axisLeft(svg, y, {
      x: 70,
      tickValues: logTicks(domain),
      format: axisSeconds,
      length: width - 90,
      name: isProfile ? "in a run" : "whole, in the play-off",
    });
    svg
      .append("line")
      .attr("class", "equal")
      .attr("x1", x(domain[0]))
      .attr("y1", y(domain[0]))
      .attr("x2", x(domain[1]))
      .attr("y2", y(domain[1]));
    const dots = svg
      .selectAll("circle")
      .data(points)
      .join("circle")
      .attr("class", (point) => `dot ${point.colour}`)
      .attr("r", 5)
      .attr("cx", (point) => x(point.estimated))
      .attr("cy", (point) => y(point.measured));
    dots.on("click", ({ partition }) => partition && select({ graph, partition, node: null }));
    tells(dots, (point) => [
      point.name,
      `estimated ${seconds(point.estimated)}`,
      `measured ${seconds(point.measured)}`,
      `${difference(point.measured - point.estimated)} (${share(point.measured / point.estimated - 1)})`,
    ]);
  };
  const columns = [
    { head: isProfile ? "Partition" : "Contender", cell: (point) => point.name },
    { head: "Estimated", cell: (point) => seconds(point.estimated), number: true },
    { head: "Measured", cell: (point) => seconds(point.measured), number: true },
    { head: "Difference", cell: (point) => difference(point.measured - point.estimated), number: true },
  ];
  const note = isProfile
    ? "Each partition in a run against its cost alone. On the line they agree; above it the run is slower."
    : "Each contender as a whole against the sum of its costs. On the line they agree. A profile would show partitions.";
  return chart({
    id: "accuracy",
    title: "Measured against estimated",
    summary: `${points.length} points`,
    note,
    height: HEIGHT,
    draw,
    columns,
    rows: points,
  });
}
