// Shows of a form only what belongs to the chosen kind of trigger. Without this script all of it is there.
function show(form) {
  const kind = form.elements.kind.value;
  for (const part of form.querySelectorAll("[data-of]")) part.hidden = !part.dataset.of.split(" ").includes(kind);
}

document.addEventListener("change", (event) => {
  if (event.target.name === "kind" && event.target.form?.matches("[data-kinds]")) show(event.target.form);
});
document.addEventListener("htmx:after:swap", () => document.querySelectorAll("[data-kinds]").forEach(show));
document.querySelectorAll("[data-kinds]").forEach(show);
