"use strict";
(() => {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  for (const button of document.querySelectorAll("button.theme")) {
    const show = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `switch to ${dark() ? "light" : "dark"} colours`); };
    button.hidden = false;
    button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; show(); });
    show();
  }
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  const order = (cell) => { const raw = cell.dataset.order ?? cell.textContent.trim(); const value = Number(raw); return raw === "" || Number.isNaN(value) ? raw : value; };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      while (head.firstChild) button.append(head.firstChild);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const sorted = [...body.rows].sort((one, other) => {
          const a = order(one.cells[place]), b = order(other.cells[place]);
          const compared = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
          return up ? compared : -compared;
        });
        body.append(...sorted);
      });
    });
  }
  const needed = (points, target) => {
    for (let i = 0; i < points.length; i++) {
      const [epsilon, mean] = points[i];
      if (mean < target) continue;
      if (i === 0) return [epsilon, `≤ ${epsilon}`];
      const [before, low] = points[i - 1];
      const found = Math.exp(Math.log(before) + (target - low) / (mean - low) * Math.log(epsilon / before));
      return [found, found.toPrecision(2).replace(/\.0+$/, "")];
    }
    return [1e9, "-"];
  };
  for (const slider of document.querySelectorAll(".slider input")) {
    const table = document.getElementById(slider.dataset.table), output = slider.parentElement.querySelector("output");
    const show = () => {
      output.textContent = `${Number(slider.value).toFixed(1)} %`;
      for (const row of table.tBodies[0].rows) {
        const cell = row.querySelector(".live"), [value, text] = needed(JSON.parse(row.dataset.points), slider.value / 100);
        cell.textContent = text; cell.dataset.order = value;
      }
    };
    slider.parentElement.hidden = false;
    slider.addEventListener("input", show);
    show();
  }
})();
