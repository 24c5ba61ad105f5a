/**
 * roofline.js: every partition as a point below what this machine could do: arithmetic by operations for each byte that it must
 * move (S. Williams et al., "Roofline", 2009), and the bandwidth of partitions that only move data.
 */

import { bytes, count, operators, rate, seconds, share } from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { select } from "collage/base/selection.js";
import { axisBelow, axisLeft, chart, logTicks, tells } from "collage/charts/chart.js";

const HEIGHT = 360;
const CACHES = ["near cache", "shared cache", "memory"];

/** The machine's limits: {flops, bandwidths: [{name, bytes per second}]}; unknown ones are left out. */
function roofs(rates) {
  const flops = rates?.flops ?? null;
  const bandwidths = (rates?.bytes ?? [])
    .map((value, i) => ({ name: CACHES[i] ?? "memory", value }))
    .filter((row) => row.value);
  return { flops, bandwidths };
}

function pointsOf(graph) {
  return graph.partitions
    .filter(({ cost, seconds: time }) => time && cost?.bytes)
    .map((partition) => {
      const flops = 2 * (partition.cost.multiply_adds ?? 0);
      return {
        partition,
        flops,
        bytes: partition.cost.bytes,
        seconds: partition.seconds,
        intensity: flops / partition.cost.bytes,
        speed: flops / partition.seconds,
        bandwidth: partition.cost.bytes / partition.seconds,
      };
    });
}

function tip({ partition, flops, speed, bandwidth, intensity, bytes: moved }) {
  const least = partition.cost.least_seconds;
  return [
    `partition ${partition.index}: ${partition.toolchain}`,
    operators(partition.operators),
    seconds(partition.seconds),
    flops > 0
      ? `${rate(speed, "FLOP/s")} at ${intensity.toPrecision(3)} FLOP for each byte`
      : `${rate(bandwidth, "B/s")}, ${bytes(moved)} moved`,
    ...(least ? [`${share(least / partition.seconds)} of what the machine allows`] : []),
  ];
}

const columns = [
  { head: "Partition", cell: ({ partition }) => partition.index, number: true },
  { head: "Toolchain", cell: ({ partition }) => partition.toolchain },
  { head: "FLOP", cell: ({ flops }) => count(flops), number: true },
  { head: "Moved", cell: (point) => bytes(point.bytes), number: true },
  { head: "FLOP for each byte", cell: ({ intensity }) => intensity.toPrecision(3), number: true },
  { head: "Arithmetic", cell: ({ flops, speed }) => (flops > 0 ? rate(speed, "FLOP/s") : "–"), number: true },
  { head: "Bandwidth", cell: ({ bandwidth }) => rate(bandwidth, "B/s"), number: true },
  {
    head: "Of the machine's best",
    cell: ({ partition }) =>
      share(partition.cost.least_seconds ? partition.cost.least_seconds / partition.seconds : null),
    number: true,
  },
];

function drawDots(svg, points, graph, x, y) {
  const greatest = Math.max(...points.map((point) => point.seconds));
  const dots = svg
    .append("g")
    .selectAll("circle")
    .data(points)
    .join("circle")
    .attr("class", ({ partition }) => `dot ${colourOf(partition.toolchain)}`)
    .attr("data-partition", ({ partition }) => partition.index)
    .attr("cx", x)
    .attr("cy", y)
    .attr("r", (point) => 3 + 7 * Math.sqrt(point.seconds / greatest));
  dots.on("click", ({ partition }) => select({ graph, partition, node: null }));
  tells(dots, tip);
}

function drawRoofs(svg, { flops, bandwidths }, x, y) {
  const [least, most] = x.domain();
  for (const { name, value } of bandwidths) {
    const knee = flops ? Math.min(most, flops / value) : most;
    if (knee < least) continue;
    svg
      .append("line")
      .attr("class", "roof")
      .attr("x1", x(least))
      .attr("y1", y(least * value))
      .attr("x2", x(knee))
      .attr("y2", y(knee * value));
    const slope = (180 / Math.PI) * Math.atan2(y(knee * value) - y(least * value), x(knee) - x(least));
    svg
      .append("text")
      .attr("class", "roof-name")
      .attr("transform", `translate(${x(least) + 8} ${y(least * value) - 10}) rotate(${slope})`)
      .text(`${name} ${rate(value, "B/s")}`);
  }
  if (!flops) return;
  svg
    .append("line")
    .attr("class", "roof")
    .attr("x1", x(least))
    .attr("y1", y(flops))
    .attr("x2", x(most))
    .attr("y2", y(flops));
  svg
    .append("text")
    .attr("class", "roof-name")
    .attr("x", x(most))
    .attr("y", y(flops) - 6)
    .attr("text-anchor", "end")
    .text(`float32 arithmetic ${rate(flops, "FLOP/s")}`);
}

/** Returns the charts of the partitions whose operations or bytes are known; none where none are. */
export function roofline(graph, rates) {
  const points = pointsOf(graph);
  const limits = roofs(rates);
  const computing = points.filter((point) => point.flops > 0);
  const moving = points.filter((point) => point.flops === 0);
  return [
    computing.length > 0 && arithmetic(graph, computing, limits),
    moving.length > 0 && bandwidthOnly(graph, moving, limits),
  ].filter((figure) => figure);
}

function arithmetic(graph, points, limits) {
  const xs = points.map((point) => point.intensity);
  const speeds = points.map((point) => point.speed);
  const slopes = limits.bandwidths.map((row) => row.value);
  const domainX = [
    Math.min(...xs) / 2,
    Math.max(...xs, limits.flops && slopes.length ? limits.flops / Math.min(...slopes) : 0) * 2,
  ];
  const domainY = [Math.min(...speeds) / 2, Math.max(...speeds, limits.flops ?? 0) * 2];
  const draw = (svg, width, height) => {
    const x = d3
      .scaleLog()
      .domain(domainX)
      .range([78, width - 16]);
    const y = d3
      .scaleLog()
      .domain(domainY)
      .range([height - 44, 26]);
    axisBelow(svg, x, {
      y: height - 44,
      tickValues: logTicks(domainX),
      format: d3.format("~g"),
      length: height - 70,
      name: "FLOP for each byte moved",
    });
    axisLeft(svg, y, {
      x: 78,
      tickValues: logTicks(domainY),
      format: (value) => rate(value, "FLOP/s"),
      length: width - 94,
      name: "",
    });
    svg
      .append("clipPath")
      .attr("id", "roofline-clip")
      .append("rect")
      .attr("x", 78)
      .attr("y", 16)
      .attr("width", width - 94)
      .attr("height", height - 60);
    drawRoofs(svg.append("g").attr("clip-path", "url(#roofline-clip)"), limits, x, y);
    drawDots(
      svg,
      points,
      graph,
      (point) => x(point.intensity),
      (point) => y(point.speed),
    );
  };
  const note = `Partitions that multiply and add; area: time. ${limits.flops ? "Lines: what this machine measured for itself." : "A profile (--profile) has the machine's limits."} Work is counted as the mathematics need it, so algorithms that save products may lie above a line.`;
  return chart({
    id: "roofline",
    title: "Roofline",
    summary: `${points.length} partitions`,
    note,
    height: HEIGHT,
    draw,
    columns,
    rows: points,
  });
}

function bandwidthOnly(graph, points, limits) {
  const speeds = points.map((point) => point.bandwidth);
  const domain = [Math.min(...speeds) / 2, Math.max(...speeds, ...limits.bandwidths.map((row) => row.value)) * 1.5];
  const sizes = points.map((point) => point.bytes);
  const domainX = [Math.min(...sizes) / 1.5, Math.max(...sizes) * 1.5];
  const draw = (svg, width, height) => {
    const x = d3
      .scaleLog()
      .domain(domainX)
      .range([78, width - 16]);
    const y = d3
      .scaleLog()
      .domain(domain)
      .range([height - 44, 26]);
    axisBelow(svg, x, {
      y: height - 44,
      tickValues: logTicks(domainX),
      format: bytes,
      length: height - 70,
      name: "bytes moved",
    });
    axisLeft(svg, y, {
      x: 78,
      tickValues: logTicks(domain),
      format: (value) => rate(value, "B/s"),
      length: width - 94,
      name: "",
    });
    for (const { name, value } of limits.bandwidths) {
      svg
        .append("line")
        .attr("class", "roof")
        .attr("x1", 78)
        .attr("x2", width - 16)
        .attr("y1", y(value))
        .attr("y2", y(value));
      svg
        .append("text")
        .attr("class", "roof-name")
        .attr("x", width - 16)
        .attr("y", y(value) - 6)
        .attr("text-anchor", "end")
        .text(`${name} ${rate(value, "B/s")}`);
    }
    drawDots(
      svg,
      points,
      graph,
      (point) => x(point.bytes),
      (point) => y(point.bandwidth),
    );
  };
  const note = "Partitions without products, which move data: bytes of inputs and results for their time; area: time.";
  return chart({
    id: "bandwidth",
    title: "Bandwidth",
    summary: `${points.length} partitions`,
    note,
    height: HEIGHT,
    draw,
    columns,
    rows: points,
  });
}
