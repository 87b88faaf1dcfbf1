/**
 * Disables telemetry. Import it before onnxruntime-node: since 1.29 its Linux and macOS builds report sessions to
 * Microsoft and store a machine id in the home directory, unless this variable is set when they load
 * (microsoft/onnxruntime#27379).
 */
process.env['ORT_DISABLE_TELEMETRY'] = '1';
