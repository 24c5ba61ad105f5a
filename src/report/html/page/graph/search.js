/**
 * search.js: finds nodes by their name in the model, operator, type or toolchain, also inside of folded partitions.
 */

import { h } from "collage/base/dom.js";
import { plural } from "collage/base/format.js";
import { select } from "collage/base/selection.js";

/** Indices of the calls and inputs of `graph` all of whose words, as typed, occur in what is known of them. */
export function find(graph, typed) {
  const words = typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word);
  if (words.length === 0) return null;
  graph.searchTexts ??= graph.nodes.map((node, index) => {
    const partition = graph.partitionOf.get(index);
    if (!partition && node.kind !== "input") return "";
    return [node.name, node.op, ...(node.type ?? []), partition?.toolchain].join(" ").toLowerCase();
  });
  const isFound = (text) => text !== "" && words.every((word) => text.includes(word));
  return graph.searchTexts.flatMap((text, index) => (isFound(text) ? [index] : []));
}

/** Returns the search box of `view`, with what it tells of the result. Enter goes to the next match, Escape ends. */
export function searchBox(view, announce) {
  const { graph } = view;
  let found = null;
  let place = -1;
  const result = h("span", { class: "muted", id: "found" });
  const input = h("input", {
    type: "search",
    id: "search",
    placeholder: "Search nodes, operators, shapes   /",
    "aria-label": "Search nodes, operators, shapes, toolchains",
  });
  const show = () => {
    found = find(graph, input.value);
    place = -1;
    view.showMatches(found === null ? null : new Set(found));
    const partitions = new Set((found ?? []).map((node) => graph.partitionOf.get(node)));
    result.textContent =
      found === null
        ? ""
        : found.length === 0
          ? "nothing found"
          : `${plural(found.length, "node")} in ${plural(partitions.size, "partition")}`;
    announce(result.textContent);
  };
  const next = (step) => {
    if (!found?.length) return;
    place = (place + step + found.length) % found.length;
    const node = found[place];
    select({ graph, partition: graph.partitionOf.get(node) ?? null, node });
    result.textContent = `${place + 1} of ${found.length}`;
  };
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    input.value = "";
    show();
    input.blur();
    event.stopPropagation();
  });
  return h("span", { class: "search" }, input, result);
}
