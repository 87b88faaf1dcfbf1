// The parts that compute nothing, in one process: on one machine, four of them would take three times the memory.
// oxlint-disable import/no-unassigned-import
// Their ports for metrics are in this order.
import '../../apps/api/dist/main.js';
import '../../apps/batch-former/dist/main.js';
import '../../apps/webhook-sender/dist/main.js';
import '../../apps/janitor/dist/main.js';
