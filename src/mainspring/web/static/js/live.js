// Live parts: an element with data-live="topic topic" and hx-get asks for itself again when one of its topics
// changes. While the database is away they keep what they show, and the banner says from when it is.
import { words } from "./moments.js";

const every = 2000;
const banner = document.getElementById("banner");
let fresh = Date.now();

function busy(part) {
  // Not under somebody's hands: an open question, a field with text in it, text that is being selected.
  const active = document.activeElement;
  const typed = active && part.contains(active) && active.matches("input, select, textarea");
  const selection = getSelection();
  const marked = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return typed || marked || part.querySelector("dialog[open], dialog:target") || part.classList.contains("htmx-request");
}

export function refresh(topic) {
  if (document.hidden) return;
  for (const part of document.querySelectorAll("[data-live]")) {
    const topics = part.dataset.live.split(" ");
    if ((topic === undefined || topics.includes(topic)) && !busy(part)) htmx.trigger(part, "live");
  }
}

function clock(moment) {
  return new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function lost(what) {
  if (!banner) return;
  const said = `${what} cannot be reached; what you see is from ${clock(fresh)}; trying again.`;
  const text = banner.querySelector("span");
  if (text.textContent !== said) text.textContent = said;
  banner.hidden = false;
}

function isLive(event) {
  return event.detail?.ctx?.sourceElement?.hasAttribute?.("data-live");
}

document.addEventListener("htmx:after:request", (event) => {
  const status = event.detail.ctx.response?.raw?.status;
  if (status === 503) lost("The database");
  else if (status === 401 && isLive(event)) location.reload();
  else if (status && status < 400 && isLive(event)) {
    fresh = Date.now();
    if (banner) banner.hidden = true;
  }
});
document.addEventListener("htmx:error", (event) => {
  if (isLive(event)) lost("The server");
});

// What somebody has opened stays open when a part is drawn anew.
document.addEventListener("htmx:before:morph:attr", (event) => {
  if (event.detail.attrName === "open" && event.target.matches?.("details, dialog")) event.preventDefault();
});

if (document.querySelector("[data-live]")) {
  setInterval(() => refresh(), every);
  document.addEventListener("visibilitychange", () => refresh());
}

// A page that could not be made asks for itself until it can.
const away = document.querySelector("[data-away]");
if (away) {
  const since = Date.now();
  setInterval(async () => {
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (answer?.ok) return location.reload();
    away.textContent = `Trying again; away for ${words((since - Date.now()) / 1000).replace("in ", "")}.`;
  }, every);
}
