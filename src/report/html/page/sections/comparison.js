/**
 * comparison.js: this executable beside another one of the same model: times, toolchains, and the parts that are computed
 * otherwise. Nodes are the same where their names in the model are.
 */
import { bytes, difference, operators, plural, ratio, seconds, share } from "collage/base/format.js";
import { facts, h, swatch, table } from "collage/base/dom.js";
import { colourOf } from "collage/base/palette.js";
import { settingsText } from "collage/sections/made.js";

const MOST_ROWS = 40;

/** The partitions of one executable with the names of their nodes; partitions without a named node cannot be compared. */
function named(explanation) {
  return explanation.graphs.flatMap((graph) => graph.partitions).map((partition) => ({ partition, names: new Set(partition.names) })).filter((row) => row.names.size > 0);
}

/** The representative of `key` in a forest of sets. */
function rootOf(parents, key) {
  while (parents.get(key) !== key) {
    parents.set(key, parents.get(parents.get(key)));
    key = parents.get(key);
  }
  return key;
}

/**
 * The least sets of nodes that both executables cover with whole partitions: {ours, theirs, extra}. `extra` is our cost of them
 * less theirs, null where one is not known.
 */
export function commonParts(ours, theirs) {
  const parents = new Map();
  for (const { names } of [...ours, ...theirs]) {
    const [first, ...rest] = names;
    for (const name of names) if (!parents.has(name)) parents.set(name, name);
    for (const name of rest) parents.set(rootOf(parents, name), rootOf(parents, first));
  }
  const parts = new Map();
  const add = (rows, side) => {
    for (const { partition, names } of rows) {
      const root = rootOf(parents, names.values().next().value);
      if (!parts.has(root)) parts.set(root, { ours: [], theirs: [] });
      parts.get(root)[side].push(partition);
    }
  };
  add(ours, "ours");
  add(theirs, "theirs");
  return [...parts.values()].map((part) => ({ ...part, extra: sum(part.ours) === null || sum(part.theirs) === null ? null : sum(part.ours) - sum(part.theirs) }));
}

/** The cost of partitions with what is between them; null where one is not known. */
function sum(partitions) {
  return partitions.some((partition) => partition.seconds === null) ? null : partitions.reduce((all, partition) => all + partition.seconds + partition.betweenSeconds, 0);
}

function isSame({ ours, theirs }) {
  const text = (partitions) => partitions.map((partition) => `${partition.toolchain} ${partition.operators}`).sort().join("\n");
  return text(ours) === text(theirs);
}

function side(partitions) {
  return [partitions.map((partition) => h("div", {}, swatch(colourOf(partition.toolchain)), ` ${partition.toolchain} `, h("span", { class: "muted" }, operators(partition.operators)))), partitions.length === 0 && h("span", { class: "muted" }, "not there")];
}

function headline(mine, other) {
  const [a, b] = [mine.report.p50_seconds, other.report.p50_seconds];
  if (!a || !b) return h("p", { class: "lead" }, "One of them was not run when it was compiled, so their times cannot be compared.");
  const says = a === b ? "as fast as" : a < b ? `${ratio(b / a)} as fast as` : `${ratio(a / b)} slower than`;
  return h("p", { class: "lead" }, h("strong", {}, seconds(a)), ` against ${seconds(b)}: this one is ${says} the other, each measured in its own compilation.`);
}

function factsTable(mine, other) {
  const row = (name, value) => ({ name, mine: value(mine), other: value(other) });
  const rows = [
    row("File", ({ report }) => report.output ?? "?"),
    row("Median of a run", ({ report }) => seconds(report.p50_seconds || null)),
    row("Machine", ({ report }) => `${report.machine ?? "?"}, ${plural(report.threads, "thread")}`),
    row("Winner", ({ report }) => report.winner || "?"),
    row("Partitions", ({ report }) => Object.entries(report.partitions ?? {}).map(([name, number]) => `${name} ${number}`).join(", ")),
    row("Proven gap", ({ report }) => share(report.certificate?.gap)),
    row("File size", ({ json, report }) => bytes(json.memory?.file_bytes ?? report.output_bytes)),
    row("Working memory", ({ json }) => bytes(json.memory?.arena_bytes)),
    row("Collage", ({ json }) => json.collage ?? "?"),
    row("Settings", ({ json }) => settingsText(json.settings)),
  ];
  return h("div", { class: "scroll" }, table([
    { head: "", cell: (line) => h("span", { class: "muted" }, line.name) },
    { head: "This", cell: (line) => line.mine },
    { head: "Other", cell: (line) => (line.other === line.mine ? line.other : h("strong", {}, line.other)) },
  ], rows));
}

/** Returns the section's content. */
export function comparison(mine, other) {
  const [ours, theirs] = [named(mine), named(other)];
  const parts = commonParts(ours, theirs);
  const changed = parts.filter((part) => !isSame(part)).sort((a, b) => Math.abs(b.extra ?? 0) - Math.abs(a.extra ?? 0));
  const same = parts.filter(isSame);
  const known = same.filter((part) => part.extra !== null);
  const drift = known.reduce((all, part) => all + part.extra, 0);
  const columns = [
    { head: "Nodes", cell: (part) => h("span", { class: "clip", title: [...part.ours, ...part.theirs].flatMap((partition) => partition.names).join("\n") }, [...part.ours, ...part.theirs][0].names[0]) },
    { head: "This", cell: (part) => side(part.ours) },
    { head: "", cell: (part) => seconds(sum(part.ours)), number: true },
    { head: "Other", cell: (part) => side(part.theirs) },
    { head: "", cell: (part) => seconds(sum(part.theirs)), number: true },
    { head: "This costs more", cell: (part) => difference(part.extra), number: true },
  ];
  return h(
    "div", { class: "chart" },
    headline(mine, other),
    factsTable(mine, other),
    h("h3", { style: "margin-top:20px" }, changed.length === 0 ? "All parts are computed alike" : `${plural(changed.length, "part")} computed otherwise`),
    facts([["Computed alike", `${plural(same.length, "part")}, ${same.length - known.length} of unknown cost; the others cost ${difference(drift)} here, which is how the two measurements differ`]]),
    changed.length > 0 && h("div", { class: "scroll" }, table(columns, changed.slice(0, MOST_ROWS), { id: "changed" })),
    changed.length > MOST_ROWS && h("p", { class: "muted" }, `and ${changed.length - MOST_ROWS} with smaller differences`),
  );
}
