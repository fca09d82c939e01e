// Before anything is drawn: light or dark as somebody chose last, or else as their system says.
const chosen = localStorage.getItem("mainspring-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
