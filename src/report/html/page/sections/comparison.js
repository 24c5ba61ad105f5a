/**
 * comparison.js: this executable (a) beside another one (b), from the facts of `collage explain --diff`.
 */

import { facts, h, table } from "collage/base/dom.js";
import { count, difference, plural, ratio, seconds } from "collage/base/format.js";
import { select } from "collage/base/selection.js";

const MOST_ROWS = 60;

function headline({ a_seconds: mine, b_seconds: other }) {
  if (typeof mine !== "number" || typeof other !== "number")
    return h(
      "p",
      { class: "lead" },
      "One of them was not run when it was compiled, so their times cannot be compared.",
    );
  const says =
    mine === other
      ? "as fast as"
      : mine < other
        ? `${ratio(other / mine)} as fast as`
        : `${ratio(mine / other)} slower than`;
  return h(
    "p",
    { class: "lead" },
    h("strong", {}, seconds(mine)),
    ` against ${seconds(other)}: this one is ${says} the other, each measured in its own compilation.`,
  );
}

/** A name that leads to the partition whose first node it is. */
function place(graph, name) {
  const partition = graph?.partitions.find((row) => row.names.includes(name));
  if (!partition) return h("span", { class: "clip", title: name }, name || "unnamed");
  return h("button", { type: "button", class: "link", onclick: () => select({ graph, partition, node: null }) }, name);
}

/** "native conv2d; dnnl relu", a line each. */
function parts(text) {
  return text.split("; ").map((part) => h("div", {}, part));
}

function limited(columns, rows, id) {
  return [
    h("div", { class: "scroll" }, table(columns, rows.slice(0, MOST_ROWS), { id })),
    rows.length > MOST_ROWS &&
      h(
        "p",
        { class: "muted" },
        `and ${count(rows.length - MOST_ROWS)} more, which collage explain --diff --json lists`,
      ),
  ];
}

/** The rows of one graph: partitions that differ, and costs that differ. */
function aboutGraph(rows, graph, suffix) {
  const partitions = [...(rows.partitions ?? [])].sort(
    (x, y) => Math.abs(y.extra_seconds ?? 0) - Math.abs(x.extra_seconds ?? 0),
  );
  const costs = rows.costs ?? [];
  return [
    h(
      "h4",
      {},
      partitions.length === 0 ? "All partitions are equal" : `${plural(partitions.length, "part")} computed otherwise`,
    ),
    partitions.length > 0 &&
      limited(
        [
          { head: "First node", cell: (row) => place(graph, row.first_node) },
          { head: "This", cell: (row) => parts(row.a) },
          { head: "", cell: (row) => seconds(row.a_seconds), number: true },
          { head: "Other", cell: (row) => parts(row.b) },
          { head: "", cell: (row) => seconds(row.b_seconds), number: true },
          { head: "Other − this", cell: (row) => difference(row.extra_seconds), number: true },
        ],
        partitions,
        `changed${suffix}`,
      ),
    costs.length > 0 && h("h4", {}, `${plural(costs.length, "cost")} measured otherwise`),
    costs.length > 0 &&
      limited(
        [
          { head: "Toolchain", cell: (row) => row.toolchain },
          { head: "Operators", cell: (row) => row.operators },
          { head: "First node", cell: (row) => place(graph, row.first_node) },
          { head: "This", cell: (row) => seconds(row.a_seconds), number: true },
          { head: "Other", cell: (row) => seconds(row.b_seconds), number: true },
          { head: "Other / this", cell: (row) => ratio(row.ratio), number: true },
        ],
        costs,
        `costs${suffix}`,
      ),
  ];
}

/** Returns the section's content. `diff` is the JSON of `collage explain --diff`. */
export function comparison(explanation, diff) {
  const named = [
    ["This", diff.a],
    ["Other", diff.b],
    ["Model", diff.model],
    ["Machine", diff.machine],
    ["Collage", diff.collage],
    ["Toolchains", diff.toolchains],
    ["Settings", diff.settings],
  ];
  return h(
    "div",
    { class: "chart" },
    headline(diff),
    facts([
      ...named,
      [
        "Equal",
        `${plural(diff.equal_partitions ?? 0, "partition")}; ${plural(diff.compared_costs ?? 0, "cost")} in both`,
      ],
    ]),
    diff.regions
      ? diff.regions.map((rows) => [
          h("h3", {}, `Graph ${rows.region}`),
          aboutGraph(rows, explanation.graphs[rows.region], `-${rows.region}`),
        ])
      : aboutGraph(diff, explanation.graphs[0], ""),
  );
}
