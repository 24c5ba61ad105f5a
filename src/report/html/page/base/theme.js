/**
 * theme.js: light and dark. The page follows the system until the reader chooses; the choice is kept where the browser
 * lets pages keep something.
 */
import { h } from "collage/base/dom.js";

const KEY = "collage-report-theme";
const THEMES = ["system", "light", "dark"];

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // pages of files may not have storage
  }
}

function apply(theme, button) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = { system: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[theme];
  button.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}. Press to change.`);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // the choice lasts as long as the page
  }
}

/** Returns the switch. Pressing it goes from the system's choice to light, then to dark. */
export function themeSwitch() {
  const button = h("button", { type: "button", class: "plain", id: "theme" });
  let place = Math.max(0, THEMES.indexOf(stored()));
  const show = () => apply(THEMES[place], button);
  button.addEventListener("click", () => {
    place = (place + 1) % THEMES.length;
    show();
  });
  show();
  return button;
}
