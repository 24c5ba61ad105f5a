/**
 * time_strip.js: one run from left to right: each partition as long as its cost, hatched what is between partitions. Beneath,
 * where there is a profile, what each thread did in a real run.
 */

import { axisSeconds, operators, seconds, share, shorten } from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { onSelect, select } from "collage/base/selection.js";
import { axisBelow, chart, tells } from "collage/charts/chart.js";

const LEFT = 76; // width of the lanes' names
const LANE = 30;
const STRIP = 44;
const GAP = 8;

/** Marks from left to right of the costs: {kind, begin, end, partition}. */
function costMarks(graph) {
  const marks = [];
  let begin = 0;
  for (const partition of graph.partitions) {
    if (partition.betweenSeconds > 0) {
      marks.push({ kind: "between", lane: 0, begin, end: begin + partition.betweenSeconds, partition });
      begin += partition.betweenSeconds;
    }
    const length = partition.seconds ?? 0;
    if (length > 0) marks.push({ kind: "partition", lane: 0, begin, end: begin + length, partition });
    begin += length;
  }
  return marks;
}

/** Marks of the profile's timeline, one lane for each thread; steps that are no partition have none. */
function threadMarks(profile, graph) {
  const ofStep = new Map(graph.partitions.map((partition) => [partition.profile?.step, partition]));
  return profile.timeline.map((span) => ({
    kind: span.region ? "region" : ofStep.has(span.step) ? "partition" : "between",
    lane: 1 + span.thread,
    begin: span.begin_seconds,
    end: span.end_seconds,
    partition: ofStep.get(span.step) ?? null,
    step: profile.steps[span.step],
  }));
}

function tip(mark) {
  const long = seconds(mark.end - mark.begin);
  if (mark.kind === "between") {
    if (mark.step) return [mark.step.kind, long];
    const { row } = mark.partition;
    return [
      `before partition ${mark.partition.index}: ${long}`,
      `further partition ${seconds(row.transition_seconds ?? 0)}`,
      `switch of toolchain ${seconds(row.switch_seconds ?? 0)}`,
      `conversions ${seconds(row.conversion_seconds ?? 0)}`,
    ];
  }
  const { partition } = mark;
  if (!partition) return [mark.step?.operators ?? "step", long];
  const name = `partition ${partition.index}: ${partition.toolchain}`;
  return mark.kind === "region"
    ? [`${name}, a thread's share`, long]
    : [
        name,
        operators(partition.operators),
        mark.lane === 0 ? `${long}, ${share(partition.share)}` : `${long} in this run`,
      ];
}

function laneTop(lane) {
  return lane === 0 ? 4 : 4 + STRIP + GAP + (lane - 1) * (LANE + GAP);
}

function drawMarks(svg, marks, x, clip) {
  const layer = svg.append("g").attr("clip-path", `url(#${clip})`);
  const nodes = layer
    .selectAll("g.mark")
    .data(marks)
    .join("g")
    .attr(
      "class",
      (mark) =>
        `mark ${mark.kind} ${mark.partition && mark.kind !== "between" ? colourOf(mark.partition.toolchain) : ""}`,
    )
    .attr("data-partition", (mark) => mark.partition?.index);
  const height = (mark) => (mark.lane === 0 ? STRIP : mark.kind === "region" ? LANE / 2 - 2 : LANE);
  nodes
    .append("rect")
    .attr("y", (mark) => laneTop(mark.lane) + (mark.kind === "region" ? LANE / 2 : 0))
    .attr("height", height);
  nodes
    .filter((mark) => mark.kind === "partition")
    .append("text")
    .attr("y", (mark) => laneTop(mark.lane) + Math.min(18, height(mark) / 2 + 4));
  nodes.on(
    "click",
    (mark) => mark.partition && select({ graph: mark.partition.graph, partition: mark.partition, node: null }),
  );
  tells(nodes, tip);
  const placeAll = (scale) => {
    const [from, to] = x.range();
    nodes.attr("display", (mark) => (scale(mark.end) < from || scale(mark.begin) > to ? "none" : null));
    nodes
      .select("rect")
      .attr("x", (mark) => scale(mark.begin))
      .attr("width", (mark) => Math.max(0.5, scale(mark.end) - scale(mark.begin) - 0.5));
    nodes
      .select("text")
      .attr("x", (mark) => Math.max(from, scale(mark.begin)) + 5)
      .text((mark) => {
        const letters = Math.floor((Math.min(to, scale(mark.end)) - Math.max(from, scale(mark.begin)) - 8) / 6.6);
        return letters < 6 ? "" : shorten(`${mark.partition.index} ${operators(mark.partition.operators)}`, letters);
      });
  };
  placeAll(x);
  return { nodes, placeAll };
}

function nameLanes(svg, lanes) {
  for (const [lane, name] of lanes.entries()) {
    svg
      .append("text")
      .attr("class", "label")
      .attr("x", LEFT - 10)
      .attr("y", laneTop(lane) + (lane === 0 ? STRIP : LANE) / 2 + 4)
      .attr("text-anchor", "end")
      .text(name);
  }
}

/** Returns the chart of a run of `graph`; `profile` may be null. */
export function timeStrip(graph, profile) {
  if (graph.partitions.length === 0) return null;
  const marks = [...costMarks(graph), ...(profile ? threadMarks(profile, graph) : [])];
  const threads = profile ? [...new Set(profile.timeline.map((span) => span.thread))].sort((a, b) => a - b) : [];
  const lanes = ["by cost", ...threads.map((thread) => `thread ${thread}`)];
  const bottom = laneTop(lanes.length - 1) + (lanes.length === 1 ? STRIP : LANE) + 4;
  const end = Math.max(0, ...marks.map((mark) => mark.end));
  const draw = (svg, width) => {
    const x = d3
      .scaleLinear()
      .domain([0, end || 1])
      .range([LEFT, width - 10]);
    svg
      .append("clipPath")
      .attr("id", "strip-clip")
      .append("rect")
      .attr("x", LEFT)
      .attr("width", width - 10 - LEFT)
      .attr("height", bottom + 2);
    nameLanes(svg, lanes);
    const axis = (scale) => {
      svg.select("g.axis").remove();
      axisBelow(svg, scale, { y: bottom, ticks: Math.max(3, Math.floor(width / 140)), format: axisSeconds });
    };
    axis(x);
    const { nodes, placeAll } = drawMarks(svg, marks, x, "strip-clip");
    const zoom = d3
      .zoom()
      .scaleExtent([1, 400])
      .translateExtent([
        [LEFT, 0],
        [width - 10, bottom],
      ])
      .extent([
        [LEFT, 0],
        [width - 10, bottom],
      ])
      .filter(() => !d3.event.button && (d3.event.type !== "wheel" || d3.event.ctrlKey))
      .on("zoom", () => {
        const scale = d3.event.transform.rescaleX(x);
        placeAll(scale);
        axis(scale);
      });
    svg.call(zoom);
    onSelect((selection) =>
      nodes.classed(
        "selected",
        (mark) => selection?.graph === graph && mark.partition !== null && mark.partition === selection.partition,
      ),
    );
  };
  const summary = `${graph.partitions.length} partitions, ${seconds(end)} in all`;
  const note = `Each partition as long as its cost; hatched: switches of toolchain and conversions.${profile ? " Threads: one real run, from the profile; the lower half of a lane is a thread's share of parallel work." : ""} Ctrl and wheel, or a double press, to zoom; drag to move.`;
  const columns = [
    { head: "Lane", cell: (mark) => lanes[mark.lane] ?? mark.lane },
    { head: "Partition", cell: (mark) => mark.partition?.index ?? "" },
    { head: "Kind", cell: (mark) => mark.kind },
    { head: "Begin", cell: (mark) => seconds(mark.begin), number: true },
    { head: "Length", cell: (mark) => seconds(mark.end - mark.begin), number: true },
  ];
  return chart({
    id: "run",
    title: "A run, step by step",
    summary,
    note,
    height: bottom + 26,
    draw,
    columns,
    rows: marks,
  });
}
