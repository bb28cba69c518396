"use strict";
// What the page has in common: its data, its colours, tabs and the list of contents.
const report = (() => {
  const embedded = JSON.parse(document.getElementById("embedded").textContent);
  const decoded = new Map();
  const listeners = [];
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");

  function array(index) {
    if (!decoded.has(index)) {
      const bytes = Uint8Array.from(atob(embedded.arrays[index]), (c) => c.charCodeAt(0));
      decoded.set(index, new Float32Array(bytes.buffer));
    }
    return decoded.get(index);
  }

  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  }

  function colour(role) {
    return embedded.colours[role][dark() ? 1 : 0];
  }

  function style(name) {
    return getComputedStyle(root).getPropertyValue("--" + name).trim();
  }

  function onTheme(listener) {
    listeners.push(listener);
  }

  function changed() {
    for (const listener of listeners) listener();
  }

  document.querySelector(".theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    changed();
  });
  prefersDark.addEventListener("change", changed);

  for (const tabs of document.querySelectorAll(".tabs")) {
    const buttons = [...tabs.querySelectorAll('[role="tab"]')];
    const panes = [...tabs.querySelectorAll('[role="tabpanel"]')];
    buttons.forEach((button, place) => button.addEventListener("click", () => {
      buttons.forEach((other, i) => other.setAttribute("aria-selected", String(i === place)));
      panes.forEach((pane, i) => { pane.hidden = i !== place; });
    }));
  }

  const links = [...document.querySelectorAll("nav a")];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) link.classList.toggle("here", link.hash === "#" + entry.target.id);
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main > section")) watcher.observe(section);

  return { embedded, array, colour, style, dark, onTheme };
})();
