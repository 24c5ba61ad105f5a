/**
 * details.js: the panel about the selected partition or node: what it is, what it costs, and what else could have computed it.
 */

import { facts, h, refill, swatch, table } from "collage/base/dom.js";
import {
  bytes,
  count,
  difference,
  error,
  number,
  operators,
  plural,
  rate,
  seconds,
  share,
} from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { onSelect, select } from "collage/base/selection.js";
import { costState, costText, extraText, judgement } from "collage/base/words.js";

const MOST_ROWS = 12; // of a table, before the reader asks for all

/** A table whose first rows are shown, and all on request. */
function longTable(columns, rows, noun) {
  const holder = h("div", { class: "scroll" });
  const show = (most) =>
    refill(
      holder,
      table(columns, rows.slice(0, most)),
      rows.length > most &&
        h(
          "button",
          { type: "button", class: "plain", onclick: () => show(rows.length) },
          `Show all ${plural(rows.length, noun)}`,
        ),
    );
  show(MOST_ROWS);
  return holder;
}

function nodeButton(graph, node) {
  const partition = graph.partitionOf.get(node) ?? null;
  return h(
    "button",
    { type: "button", class: "link", onclick: () => select({ graph, partition, node }) },
    graph.nodeName(node),
  );
}

function partitionButton(partition) {
  return h(
    "button",
    { type: "button", class: "link", onclick: () => select({ graph: partition.graph, partition, node: null }) },
    `partition ${partition.index}`,
  );
}

/** "dnnl conv2d + relu; native add": the partitions of an alternative. */
function waysText(graph, alternative) {
  return (alternative.candidates ?? []).map((index) => {
    const candidate = graph.candidates[index];
    const calls = (candidate.nodes ?? []).map((node) => graph.nodes[node].op).filter((op) => op);
    return h(
      "div",
      {},
      swatch(colourOf(graph.toolchainName(candidate.toolchain))),
      ` ${graph.toolchainName(candidate.toolchain)} `,
      h("span", { class: "muted" }, operators(calls.join("+"))),
    );
  });
}

function alternativesTable(partition) {
  const rows = partition.row.alternatives ?? [];
  if (rows.length === 0)
    return h("p", { class: "muted" }, partition.graph.row.no_alternatives ?? "No other way is known.");
  const others = (row) => (row.replaces ?? []).filter((number) => number !== partition.index);
  return longTable(
    [
      {
        head: "Instead",
        cell: (row) => [
          waysText(partition.graph, row),
          others(row).length > 0 && h("div", { class: "muted" }, `also in place of ${others(row).join(", ")}`),
        ],
      },
      {
        head: "Costs more",
        cell: (row) => [
          h("strong", {}, extraText(row)),
          h("div", { class: "muted" }, sumText(row)),
          h("div", { class: "muted" }, judgement(row)),
        ],
      },
    ],
    rows,
    "way",
  );
}

/** Of which sums the extra cost is made. */
function sumText(row) {
  if (typeof row.own_seconds !== "number" || typeof row.replaced_seconds !== "number") return "";
  const crossings = row.penalty_seconds ? `, crossings ${difference(row.penalty_seconds)}` : "";
  return `own ${seconds(row.own_seconds)}, in place of ${seconds(row.replaced_seconds)}${crossings}`;
}

function refusals(rows, graph) {
  if (rows.length === 0) return null;
  return [
    h("h4", {}, "Why not"),
    h(
      "dl",
      { class: "facts" },
      rows.map((row) => [
        h("dt", {}, swatch(colourOf(graph.toolchainName(row.toolchain))), ` ${graph.toolchainName(row.toolchain)}`),
        h("dd", {}, row.reason),
      ]),
    ),
  ];
}

function costFacts(cost) {
  if (!cost) return [];
  const work = cost.multiply_adds ? `${count(cost.multiply_adds)} multiply-adds` : null;
  return [
    ["Known by", costState(cost)],
    [
      "10th to 90th percentile",
      cost.p10 ? `${seconds(cost.p10)} to ${seconds(cost.p90)}, ${plural(cost.samples, "run")}` : null,
    ],
    ["Largest error", typeof cost.error === "number" ? error(cost.error) : null],
    ["Schedule", cost.schedule],
    ["Work", [work, cost.bytes ? `${bytes(cost.bytes)} moved` : null].filter((text) => text).join(", ")],
    ["Rate", cost.multiply_adds && cost.seconds ? rate((2 * cost.multiply_adds) / cost.seconds, "FLOP/s") : null],
    [
      "Least on the machine",
      cost.least_seconds
        ? `${seconds(cost.least_seconds)}, ${share(cost.seconds ? cost.least_seconds / cost.seconds : null)} of the cost`
        : null,
    ],
  ];
}

function profileFacts(step) {
  if (!step) return [];
  return [
    ["In a run", `${seconds(step.p50_seconds)} (${seconds(step.p10_seconds)} to ${seconds(step.p90_seconds)})`],
    ["With cold caches", seconds(step.cold_seconds)],
    ["Limited by", step.bound],
  ];
}

function conversionsText(partition) {
  const rows = partition.row.conversions ?? [];
  return rows
    .map((row) => `${partition.graph.nodeName(row.node)}: ${row.from} → ${row.to}, ${seconds(row.seconds)}`)
    .join("; ");
}

function aboutPartition(partition) {
  const { graph, row } = partition;
  const between = [
    ["further partition", row.transition_seconds],
    ["switch of toolchain", row.switch_seconds],
    ["conversions", row.conversion_seconds],
  ];
  return [
    h("h3", {}, swatch(colourOf(partition.toolchain)), ` Partition ${partition.index}: ${partition.toolchain}`),
    h("p", {}, operators(partition.operators)),
    facts([
      ["Cost", h("strong", {}, costText(partition.cost ?? { seconds: partition.seconds }))],
      ["Share", share(partition.share)],
      [
        "Around it",
        between
          .filter(([, value]) => value)
          .map(([name, value]) => `${name} ${seconds(value)}`)
          .join(", "),
      ],
      ["Converted", conversionsText(partition)],
      ...costFacts(partition.cost),
      ...profileFacts(partition.profile),
      [
        "Formats",
        partition.candidate
          ? `${(partition.candidate.inputs ?? []).join(", ")} → ${(partition.candidate.outputs ?? []).join(", ")}`
          : null,
      ],
      ["Rule", partition.candidate?.rule],
    ]),
    h("h4", {}, "Other ways to compute it"),
    alternativesTable(partition),
    refusals(row.refused ?? [], graph),
    h("h4", {}, plural(partition.nodes.length, "node")),
    longTable(
      [
        { head: "Node", cell: (node) => nodeButton(graph, node) },
        { head: "Operator", cell: (node) => operators(graph.nodes[node].op ?? graph.nodes[node].kind) },
        { head: "Result", cell: (node) => (graph.nodes[node].type ?? []).join(", ") },
      ],
      partition.nodes,
      "node",
    ),
  ];
}

/** "weights, 9.4 kB: −0.42 to 0.51, mean 0.003, standard deviation 0.06, 12.5 % zeros". */
function weightsText({ bytes: size, weights }) {
  const text = `weights, ${bytes(size)}`;
  if (!weights) return text;
  const [least, most, mean, deviation] = [weights.minimum, weights.maximum, weights.mean, weights.deviation].map(
    number,
  );
  const spread = `${least} to ${most}, mean ${mean}, standard deviation ${deviation}`;
  return [text, h("div", { class: "muted" }, `${spread}, ${share(weights.zeros)} zeros`)];
}

function inputsTable(graph, node) {
  const rows = graph.nodes[node].inputs ?? [];
  if (rows.length === 0) return null;
  const what = (input) =>
    graph.nodes[input].kind === "constant" ? weightsText(graph.nodes[input]) : nodeButton(graph, input);
  return [
    h("h4", {}, "Inputs"),
    longTable(
      [
        { head: "From", cell: what },
        { head: "Type", cell: (input) => (graph.nodes[input].type ?? []).join(", ") },
      ],
      rows,
      "input",
    ),
  ];
}

function holdersTable(graph, node) {
  const rows = graph.candidatesWith(node);
  if (rows.length === 0) return null;
  const left = graph.row.candidates_left_out;
  return [
    h("h4", {}, `${plural(rows.length, "candidate")} with this node`),
    longTable(
      [
        {
          head: "Toolchain",
          cell: (row) => [
            swatch(colourOf(row.toolchain)),
            ` ${row.toolchain}`,
            row.chosen && h("strong", {}, " chosen"),
          ],
        },
        {
          head: "Nodes",
          cell: (row) => count(row.candidate.nodes.filter((index) => graph.nodes[index].kind === "call").length),
          number: true,
        },
        { head: "Cost", cell: (row) => costText(row.cost), number: true },
        { head: "", cell: (row) => row.cost?.reason ?? costState(row.cost) },
      ],
      rows,
      "candidate",
    ),
    left > 0 &&
      h(
        "p",
        { class: "muted" },
        `${plural(left, "candidate")} of the whole graph with no more than a bound are not listed: they could be in no better mix.`,
      ),
  ];
}

function aboutNode(graph, node, partition) {
  const row = graph.nodes[node];
  const readers = graph.readersOf(node);
  return [
    h("h3", {}, graph.nodeName(node)),
    facts([
      ["Operator", row.op ?? row.kind],
      ["Result", (row.type ?? []).join(", ")],
      ...Object.entries(row.attrs ?? {}),
      ["Computed in", partition && h("span", {}, partitionButton(partition), ` by ${partition.toolchain}`)],
      [
        "Read by",
        readers.length > 0 &&
          h(
            "span",
            {},
            readers.slice(0, 8).map((reader, i) => [i > 0 && ", ", nodeButton(graph, reader)]),
            readers.length > 8 && ` and ${readers.length - 8} more`,
          ),
      ],
    ]),
    inputsTable(graph, node),
    holdersTable(graph, node),
    refusals(graph.refusalsOf(node), graph),
  ];
}

/** Returns the panel, which follows the selection. */
export function detailsPanel() {
  const content = h("div", { class: "content" });
  const close = h(
    "button",
    { type: "button", class: "plain close", "aria-label": "Close the details", onclick: () => select(null) },
    "✕",
  );
  const panel = h(
    "aside",
    { id: "details", "aria-label": "Details", "aria-live": "polite", hidden: true },
    close,
    content,
  );
  onSelect((selection) => {
    panel.hidden = !selection;
    document.body.classList.toggle("with-details", Boolean(selection));
    if (!selection) return;
    const { graph, partition, node } = selection;
    refill(
      content,
      node === null || node === undefined ? aboutPartition(partition) : aboutNode(graph, node, partition),
    );
    panel.scrollTop = 0;
  });
  return panel;
}
