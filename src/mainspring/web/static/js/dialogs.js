// Questions before acts: what [data-opens=ID] names is opened, and closed by Esc, by [data-closes], or by a
// click beside it. Without this script the link leads to the question by its #ID.
export function open(id) {
  const dialog = document.getElementById(id);
  if (!(dialog instanceof HTMLDialogElement) || dialog.open) return;
  dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus();
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) {
    event.preventDefault();
    open(opener.dataset.opens);
    return;
  }
  const dialog = event.target.closest("dialog");
  if (dialog && (event.target.closest("[data-closes]") || event.target === dialog)) {
    event.preventDefault();
    dialog.close();
  }
});

// An action was sent: its question has been answered.
document.addEventListener("submit", (event) => {
  const dialog = event.target.closest("dialog[open]");
  if (dialog && event.target.hasAttribute("hx-post")) dialog.close();
});

// What must be typed before an action is allowed: <input data-must-be="word">.
document.addEventListener("input", (event) => {
  const word = event.target.dataset?.mustBe;
  if (word === undefined) return;
  const button = event.target.form?.querySelector("[data-armed]");
  if (button) button.disabled = event.target.value !== word;
});
