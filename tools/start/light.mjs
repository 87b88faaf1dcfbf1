// Runs the apps that compute little in one process: four processes would take three times the memory.
// oxlint-disable import/no-unassigned-import
// The order sets their metrics ports.
import '../../apps/api/dist/main.js';
import '../../apps/batch-former/dist/main.js';
import '../../apps/webhook-sender/dist/main.js';
import '../../apps/janitor/dist/main.js';
