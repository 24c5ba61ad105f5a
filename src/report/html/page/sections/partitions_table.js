/**
 * partitions_table.js: all partitions in the order of a run, with a waterfall of their times; sorted and filtered on request.
 */

import { h, refill, swatch } from "collage/base/dom.js";
import { operators, plural, seconds, share } from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { onSelect, select } from "collage/base/selection.js";

const MOST_ROWS = 150; // shown before the reader asks for all

/** Adds where each partition begins, from the sums of costs before it. */
function withBegins(graph) {
  let begin = 0;
  return graph.partitions.map((partition) => {
    const row = { partition, begin, end: begin + partition.betweenSeconds + (partition.seconds ?? 0) };
    begin = row.end;
    return row;
  });
}

function waterfall(row, all) {
  if (all <= 0) return "";
  const percent = (value) => `${(100 * value) / all}%`;
  const { partition } = row;
  return h(
    "div",
    { class: "waterfall", "aria-hidden": "true" },
    h("span", { class: "between", style: `left:${percent(row.begin)};width:${percent(partition.betweenSeconds)}` }),
    h("span", {
      class: colourOf(partition.toolchain),
      style: `left:${percent(row.begin + partition.betweenSeconds)};width:max(2px, ${percent(partition.seconds ?? 0)})`,
    }),
  );
}

function columnsOf(rows, hasProfile) {
  const all = rows.at(-1)?.end ?? 0;
  return [
    { head: "No.", key: ({ partition }) => partition.index, cell: ({ partition }) => partition.index, number: true },
    {
      head: "Toolchain",
      key: ({ partition }) => partition.toolchain,
      cell: ({ partition }) =>
        h("span", { class: "nowrap" }, swatch(colourOf(partition.toolchain)), ` ${partition.toolchain}`),
    },
    {
      head: "Operators",
      key: ({ partition }) => partition.operators,
      cell: ({ partition }) => h("span", { class: "clip", title: partition.operators }, operators(partition.operators)),
    },
    {
      head: "First node",
      key: ({ partition }) => partition.row.first_node ?? "",
      cell: ({ partition }) =>
        h("span", { class: "clip", title: partition.row.first_node }, partition.row.first_node ?? ""),
    },
    {
      head: "Nodes",
      key: ({ partition }) => partition.nodes.length,
      cell: ({ partition }) => partition.nodes.length,
      number: true,
    },
    {
      head: "Cost",
      key: ({ partition }) => partition.seconds ?? -1,
      cell: ({ partition }) => seconds(partition.seconds),
      number: true,
    },
    hasProfile && {
      head: "In a run",
      key: ({ partition }) => partition.profile?.p50_seconds ?? -1,
      cell: ({ partition }) => seconds(partition.profile?.p50_seconds),
      number: true,
    },
    {
      head: "Share",
      key: ({ partition }) => partition.share ?? -1,
      cell: ({ partition }) => share(partition.share),
      number: true,
    },
    { head: "Up to here", key: ({ end }) => end, cell: (row) => seconds(row.end), number: true },
    { head: "Order of a run", key: ({ begin }) => begin, cell: (row) => waterfall(row, all), wide: true },
  ].filter((column) => column);
}

class PartitionsTable {
  constructor(graph) {
    this.rows = withBegins(graph);
    this.columns = columnsOf(
      this.rows,
      graph.partitions.some((partition) => partition.profile),
    );
    this.sorted = { column: 0, descending: false };
    this.most = MOST_ROWS;
    this.filter = h("input", {
      type: "search",
      id: "filter",
      placeholder: "Filter",
      "aria-label": "Filter partitions",
      oninput: () => this.show(),
    });
    this.holder = h("div", { class: "scroll" });
    this.element = h("div", {}, h("div", { class: "tools" }, this.filter), this.holder);
    this.byPartition = new Map();
    onSelect((selection) => this.mark(selection?.graph === graph ? selection.partition : null));
    this.show();
  }

  matching() {
    const words = this.filter.value
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word);
    const text = ({ partition }) =>
      [partition.index, partition.toolchain, partition.operators, ...partition.names].join(" ").toLowerCase();
    const { key } = this.columns[this.sorted.column];
    const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (this.sorted.descending ? -1 : 1);
    return this.rows.filter((row) => words.every((word) => text(row).includes(word))).sort(order);
  }

  head(column, place) {
    const { sorted } = this;
    const state = sorted.column === place ? (sorted.descending ? "descending" : "ascending") : "none";
    const press = () => {
      this.sorted = {
        column: place,
        descending: sorted.column === place ? !sorted.descending : Boolean(column.number) && place > 0,
      };
      this.show();
    };
    return h(
      "th",
      {
        scope: "col",
        class: [column.number && "number", column.wide && "wide"].filter((c) => c).join(" ") || null,
        "aria-sort": state,
      },
      h("button", { type: "button", class: "sort", onclick: press }, column.head),
    );
  }

  show() {
    const rows = this.matching();
    this.byPartition.clear();
    const body = rows.slice(0, this.most).map((row) => {
      const line = h(
        "tr",
        { tabindex: 0, "data-partition": row.partition.index, onclick: () => this.choose(row) },
        this.columns.map((column) => h("td", { class: column.number && "number" }, column.cell(row))),
      );
      line.addEventListener("keydown", (event) => event.key === "Enter" && this.choose(row));
      this.byPartition.set(row.partition, line);
      return line;
    });
    const more =
      rows.length > this.most &&
      h(
        "button",
        { type: "button", class: "plain", onclick: () => this.showAll() },
        `Show all ${plural(rows.length, "partition")}`,
      );
    refill(
      this.holder,
      h(
        "table",
        { class: "partitions" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            this.columns.map((column, place) => this.head(column, place)),
          ),
        ),
        h("tbody", {}, body),
      ),
      more,
      rows.length === 0 && h("p", { class: "muted" }, "No partition matches."),
    );
  }

  showAll() {
    this.most = Infinity;
    this.show();
  }

  choose(row) {
    select({ graph: row.partition.graph, partition: row.partition, node: null });
  }

  mark(partition) {
    for (const [other, line] of this.byPartition) line.classList.toggle("selected", other === partition);
  }
}

/** Returns the table of the partitions of `graph`. */
export function partitionsTable(graph) {
  return new PartitionsTable(graph).element;
}
