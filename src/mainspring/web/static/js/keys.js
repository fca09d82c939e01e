// Keys: / goes to the search, g and a letter go to a page, ? shows them all. Never while somebody types.
import { open } from "./dialogs.js";
import { toggle } from "./toggle.js";

// On a phone the navigation is a strip: where we are is in sight.
document.querySelector(".nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

let going = 0;

function typing(target) {
  return target.closest?.("input, select, textarea, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && typing(event.target)) return event.target.blur();
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  if (going && Date.now() - going < 1500) {
    going = 0;
    const link = document.querySelector(`.nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return;
  }
  if (event.key === "g") going = Date.now();
  else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select?.();
  } else if (event.key === "?") open("keys");
  else if (event.key === "t") toggle();
});
