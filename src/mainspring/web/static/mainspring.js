// Everything that every page has; htmx is configured by a meta element of the layout.
import "./js/toggle.js";
import "./js/dialogs.js";
import "./js/keys.js";
import "./js/notices.js";
import "./js/moments.js";
import "./js/live.js";
