// What became of an action that could not be done, said aloud by screen readers, as text and never as markup.
export function say(text, kind = "bad") {
  const place = document.getElementById("notices");
  if (!place) return;
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.kind = kind;
  notice.textContent = text;
  place.replaceChildren(notice);
}

document.addEventListener("htmx:response:error", (event) => {
  const ctx = event.detail.ctx;
  if (ctx.sourceElement?.closest?.("[data-live]") === ctx.sourceElement) return; // live.js speaks of those
  let detail = `The server answered ${ctx.response.raw.status}.`;
  try {
    detail = JSON.parse(ctx.text).detail || detail;
  } catch {
    // Not one of ours: the status must do.
  }
  say(detail);
});
