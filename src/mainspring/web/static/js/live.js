// Live parts: an element with data-live="topic topic" and hx-get asks for itself again when the server says that
// one of its topics has changed, and every few seconds whatever it says: news is a hint, and may be lost.
// While the database is away parts keep what they show, and the banner says from when it is.
import { words } from "./moments.js";

const seconds = 5;
const base = document.documentElement.dataset.base;
const banner = document.getElementById("banner");
let fresh = Date.now();
let source = null;

function busy(part) {
  // Not under somebody's hands: an open question, a field with text in it, text that is being selected.
  const active = document.activeElement;
  const typed = active && part.contains(active) && active.matches("input, select, textarea");
  const selection = getSelection();
  const marked = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return typed || marked || part.querySelector("dialog[open], dialog:target") !== null;
}

function parts() {
  return [...document.querySelectorAll("[data-live]")];
}

function refresh(part) {
  if (document.hidden || part.dataset.asking || busy(part)) return;
  part.dataset.asking = "yes";
  htmx.trigger(part, "live");
}

function refreshAll(topic) {
  for (const part of parts()) if (part.dataset.live.split(" ").includes(topic)) refresh(part);
}

// Every part at its own pace: data-every, in seconds, for those that are watched closely.
const asked = new WeakMap();
function tick() {
  const now = Date.now();
  for (const part of parts()) {
    const wait = Number(part.dataset.every || seconds) * 1000;
    if (now - (asked.get(part) ?? now - (asked.set(part, now), 0)) < wait) continue;
    asked.set(part, now);
    delete part.dataset.asking; // an answer that did not come in so long is not waited for
    refresh(part);
  }
}

// One stream for all parts, and only while somebody looks: a browser has few connections to one server.
function listen() {
  if (document.hidden || source) return;
  const topics = [...new Set(parts().flatMap((part) => part.dataset.live.split(" ")))].filter(Boolean);
  if (!topics.length) return;
  source = new EventSource(`${base}/api/v1/stream?${topics.map((each) => `topic=${encodeURIComponent(each)}`).join("&")}`);
  for (const topic of topics) source.addEventListener(topic, () => refreshAll(topic));
  source.addEventListener("unavailable", () => lost("The database"));
  source.addEventListener("closed", () => location.reload());
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) hush(); // refused: tick() goes on without
  });
}

function hush() {
  source?.close();
  source = null;
}

function clock(moment) {
  return new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function lost(what) {
  if (!banner) return;
  const said = `${what} cannot be reached; what you see is from ${clock(fresh)}; trying again.`;
  const text = banner.querySelector("span");
  if (text.textContent !== said) text.textContent = said;
  banner.hidden = false;
}

function partOf(event) {
  const element = event.detail?.ctx?.sourceElement;
  return element?.hasAttribute?.("data-live") ? element : null;
}

document.addEventListener("htmx:after:request", (event) => {
  const status = event.detail.ctx.response?.raw?.status;
  const part = partOf(event);
  if (status === 503) lost("The database");
  else if (status === 401 && part) location.reload();
  else if (status && status < 400 && part) {
    fresh = Date.now();
    if (banner) banner.hidden = true;
  }
});
document.addEventListener("htmx:error", (event) => {
  if (partOf(event)) lost("The server");
});
document.addEventListener("htmx:finally:request", (event) => {
  const part = partOf(event);
  if (part) delete part.dataset.asking;
});

// An answer that comes when somebody has begun to do something is not shown; the next one is.
document.addEventListener("htmx:before:swap", (event) => {
  const part = partOf(event);
  if (part && busy(part)) event.preventDefault();
});

// What somebody has opened or closed stays so when a part is drawn anew.
document.addEventListener("htmx:before:morph:attr", (event) => {
  if (event.detail.attrName === "open" && event.target.matches?.("details, dialog")) event.preventDefault();
});

if (parts().length) {
  listen();
  setInterval(tick, 500);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return hush();
    listen();
    parts().forEach(refresh);
  });
  addEventListener("pagehide", hush);
}

// A page that could not be made asks for itself until it can.
const away = document.querySelector("[data-away]");
if (away) {
  const since = Date.now();
  setInterval(async () => {
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (answer?.ok) return location.reload();
    away.textContent = `Trying again; away for ${words((since - Date.now()) / 1000).replace("in ", "")}.`;
  }, 2000);
}
