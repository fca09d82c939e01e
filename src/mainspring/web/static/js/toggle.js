// The button that changes between light and dark; the choice is kept by this browser alone.
export function toggle() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("mainspring-theme", root.dataset.theme);
  document.dispatchEvent(new CustomEvent("theme"));
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-toggles-theme]")) toggle();
});
