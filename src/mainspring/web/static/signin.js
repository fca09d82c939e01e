// A link that signs in carries its token behind the #, which browsers never send and nobody logs. It is put
// into the form, and taken out of the address bar and the history before anything else is done.
const found = /^#token=(ms_[A-Za-z0-9_-]{20,200})$/.exec(location.hash);
if (found) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = found[1];
  document.getElementById("signin").submit();
}
