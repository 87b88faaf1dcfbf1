/**
 * Imported before onnxruntime-node: since 1.29 its Linux and macOS builds report sessions to Microsoft and keep an id of
 * the machine in the home directory, unless this says otherwise at the time they are loaded. What runs here is nobody's
 * business (microsoft/onnxruntime pull request 27379 has the variable).
 */
process.env['ORT_DISABLE_TELEMETRY'] = '1';
