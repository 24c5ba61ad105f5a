/**
 * main.js: makes the page of its islands: "explanation" and "layout"; "profile" and "diff" (beside another executable) where
 * they were given.
 */

import { Explanation, island } from "collage/base/data.js";
import { h, refill } from "collage/base/dom.js";
import { bindKeys } from "collage/base/keys.js";
import { assignColours } from "collage/base/palette.js";
import { select, selected } from "collage/base/selection.js";
import { themeSwitch } from "collage/base/theme.js";
import { accuracy } from "collage/charts/accuracy.js";
import { arenas } from "collage/charts/arena.js";
import { timeBars } from "collage/charts/bars.js";
import { playOff } from "collage/charts/play_off.js";
import { progress } from "collage/charts/progress.js";
import { roofline } from "collage/charts/roofline.js";
import { timeStrip } from "collage/charts/time_strip.js";
import { graphSection } from "collage/graph/graph_section.js";
import { comparison } from "collage/sections/comparison.js";
import { detailsPanel } from "collage/sections/details.js";
import { made } from "collage/sections/made.js";
import { overview } from "collage/sections/overview.js";
import { partitionsTable } from "collage/sections/partitions_table.js";
import { aboutProfile } from "collage/sections/profile.js";

const status = h("p", { class: "visually-hidden", role: "status", id: "status" });
const announce = (text) => {
  status.textContent = text;
};

/** The plan of the profile that has the kernels of `graph`: undefined where none or several could be it. */
function planOf(graph, steps) {
  const fits = (plan) =>
    graph.partitions.every(({ row, operators }) =>
      steps.some((step) => step.plan === plan && step.partition === row.kernel && step.operators === operators),
    );
  const plans = [...new Set(steps.map((step) => step.plan))].filter(fits);
  return plans.length === 1 ? plans[0] : undefined;
}

/** Gives each partition its step of the profile: that of its kernel in its plan. */
function addProfile(explanation, { steps }) {
  for (const graph of explanation.graphs) {
    const plan = explanation.graphs.length > 1 ? planOf(graph, steps) : "";
    for (const partition of graph.partitions) {
      const isOwn = (step) => step.plan === plan && step.partition === partition.row.kernel;
      partition.profile = steps.find(isOwn) ?? null;
    }
  }
}

/** What the machine can do, as the profile measured it; null where it did not. */
function machineRates(profile) {
  const roof = profile?.roof;
  if (!roof) return null;
  return {
    flops: roof.flops_per_second,
    bytes: [roof.near_bytes_per_second, roof.shared_bytes_per_second, roof.memory_bytes_per_second],
  };
}

function section(id, title, ...content) {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), content);
}

/** The sections about one graph. Returns {sections, view}. */
function aboutGraph(graph, profile) {
  const picture = graphSection(graph, announce);
  const charts = [
    ...(graph.partitions.length > 0 ? timeBars(graph) : []),
    accuracy(graph),
    ...roofline(graph, machineRates(profile)),
    ...progress(graph),
    ...arenas(profile),
  ];
  const sections = [
    section("contenders", "Against each toolchain alone", playOff(graph)),
    section("graph", "Graph", picture.content),
    (graph.partitions.length > 0 || profile) &&
      section("time", "Time", timeStrip(graph, profile), profile && aboutProfile(profile)),
    section("charts", "Charts", h("div", { class: "charts" }, charts)),
    graph.partitions.length > 0 && section("partitions", "Partitions", partitionsTable(graph)),
  ];
  return { sections, view: picture.view };
}

function graphChoice(explanation, show) {
  if (explanation.graphs.length < 2) return null;
  const options = explanation.graphs.map((graph, index) =>
    h("option", { value: index }, `${graph.row.name}: ${graph.partitions.length} partitions`),
  );
  return h(
    "label",
    { class: "choice" },
    "Part of the program ",
    h("select", { id: "graph-choice", onchange: (event) => show(Number(event.target.value)) }, options),
  );
}

const NAMES = [
  ["overview", "Overview"],
  ["contenders", "Play-off"],
  ["graph", "Graph"],
  ["time", "Time"],
  ["charts", "Charts"],
  ["partitions", "Partitions"],
  ["comparison", "Comparison"],
  ["made", "Made"],
];

function header(explanation, dialog) {
  const links = NAMES.map(([id, name]) => h("a", { href: `#${id}`, "data-section": id }, name));
  const help = h(
    "button",
    {
      type: "button",
      class: "plain",
      "aria-label": "Keyboard shortcuts",
      title: "Keyboard shortcuts (?)",
      onclick: () => dialog.showModal(),
    },
    "?",
  );
  return h(
    "header",
    {},
    h("a", { class: "skip", href: "#overview" }, "Skip to the content"),
    h("strong", { class: "brand" }, explanation.model),
    h("nav", { "aria-label": "Sections" }, links),
    themeSwitch(),
    help,
  );
}

function followSections(links) {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        links.find((link) => link.dataset.section === target.id)?.toggleAttribute("data-here", isIntersecting);
      }
    },
    { rootMargin: "-20% 0px -60% 0px" },
  );
  for (const element of document.querySelectorAll("section[id]")) seen.observe(element);
  for (const link of links) link.hidden = document.getElementById(link.dataset.section) === null;
}

/** Goes to the partition `step` places after the selected one. */
function walk(graph, step) {
  const { partitions } = graph;
  if (partitions.length === 0) return;
  const here = selected()?.partition?.index ?? (step > 0 ? -1 : partitions.length);
  const partition = partitions[Math.min(partitions.length - 1, Math.max(0, here + step))];
  select({ graph, partition, node: null });
}

/** Scrolls to the section `id`; then focuses what `find` returns, if it is there. */
function goTo(id, find) {
  document.getElementById(id)?.scrollIntoView();
  find()?.focus({ preventScroll: true });
}

/** The shortcuts of the page. `shown()` is the graph that is shown and its picture: {graph, view}. */
function shortcuts(shown) {
  const view = () => shown()?.view;
  const byId = (id) => () => document.getElementById(id);
  return [
    { key: "/", says: "search the graph", run: () => goTo("graph", byId("search")) },
    { key: "g", says: "go to the graph", run: () => goTo("graph", () => view()?.svg.node()) },
    { key: "p", says: "go to the table of partitions", run: () => goTo("partitions", byId("filter")) },
    { key: "]", says: "next partition", run: () => shown() && walk(shown().graph, 1) },
    { key: "[", says: "partition before", run: () => shown() && walk(shown().graph, -1) },
    { key: "u", says: "unfold all partitions", run: () => view()?.unfoldAll() },
    { key: "c", says: "fold all partitions", run: () => view()?.foldAll() },
    { key: "t", says: "light, dark, or as the system", run: () => document.getElementById("theme").click() },
    { key: "Escape", shown: "Esc", says: "close the details", run: () => select(null) },
  ];
}

/** Has paper show all of the graph, and the screen afterwards what it showed before. */
function fitForPrinting(view) {
  let before = null;
  addEventListener("beforeprint", () => {
    before = view()?.transform ?? null;
    view()?.fit();
  });
  addEventListener("afterprint", () => before && view().moveTo(before.x, before.y, before.k));
}

/** Says in the document that all is drawn. */
function announceReady() {
  requestAnimationFrame(() =>
    setTimeout(() => {
      window.drawnAt = performance.now(); // since the navigation; benchmarks/reports/page_speed.py reads it
      document.documentElement.dataset.ready = "true";
    }),
  );
}

function start() {
  const explanation = new Explanation(island("explanation"), island("layout")?.graphs ?? []);
  const diff = island("diff");
  const profile = island("profile");
  assignColours(explanation.toolchains());
  if (profile) addProfile(explanation, profile);
  document.title = `${explanation.model}: Collage report`;

  let shown = null; // {graph, view}
  const nothing = h("p", { class: "note" }, "Nothing of this program was searched: it has no part of static shapes.");
  const graphPart = h("div", {}, nothing);
  const show = (index) => {
    select(null);
    const graph = explanation.graphs[index];
    const { sections, view } = aboutGraph(graph, profile);
    shown = { graph, view };
    refill(graphPart, sections);
  };
  const dialog = bindKeys(shortcuts(() => shown));
  fitForPrinting(() => shown?.view);
  const main = h(
    "main",
    {},
    section("overview", "Overview", overview(explanation)),
    graphChoice(explanation, show),
    graphPart,
    diff && section("comparison", "Comparison", comparison(explanation, diff)),
    section("made", "How it was made", made(explanation)),
  );
  const top = header(explanation, dialog);
  document.body.append(top, h("div", { class: "page" }, main, detailsPanel()), status, dialog);
  if (explanation.graphs.length > 0) show(0);
  followSections([...top.querySelectorAll("nav a")]);
  announceReady();
}

start();
