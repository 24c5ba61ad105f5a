/**
 * keys.js: shortcuts of the whole page, and the dialog that lists them. Keys of single controls (arrows in the graph) are
 * bound there and only listed here.
 */
import { h } from "collage/base/dom.js";

const IN_GRAPH = [
  ["← ↑ → ↓", "graph: go to the partition in that direction"],
  ["Enter", "graph: unfold or fold the partition"],
  ["+  −  0", "graph: zoom in, zoom out, show all"],
];

function isTyping(event) {
  return event.target.closest?.("input, select, textarea") !== null && event.key !== "Escape";
}

function makeDialog(shortcuts) {
  const rows = [...shortcuts.map(({ shown, key, says }) => [shown ?? key, says]), ...IN_GRAPH];
  const close = h("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Close");
  const dialog = h(
    "dialog",
    { id: "shortcuts", "aria-label": "Keyboard shortcuts" },
    h("h2", {}, "Keyboard"),
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        rows.map(([key, says]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, says))),
      ),
    ),
    close,
  );
  return dialog;
}

/** Binds `shortcuts`, each {key, says, run, shown}, to the page. Returns the dialog that lists them, which "?" opens. */
export function bindKeys(shortcuts) {
  const all = [...shortcuts, { key: "?", says: "list the shortcuts", run: () => dialog.showModal() }];
  const dialog = makeDialog(all);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || dialog.open) return;
    const shortcut = all.find(({ key }) => key === event.key);
    if (!shortcut) return;
    shortcut.run();
    event.preventDefault();
  });
  return dialog;
}
