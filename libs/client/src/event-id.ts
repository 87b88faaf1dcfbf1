/** Below 0 when `left` comes before `right`. Ids are those of Redis streams, `<sequence>-<number>` or `<sequence>`. */
export function compareEventIds(left: string, right: string): number {
  const [leftParts, rightParts] = [partsOf(left), partsOf(right)];
  return leftParts[0] - rightParts[0] || leftParts[1] - rightParts[1];
}

function partsOf(id: string): [sequence: number, number: number] {
  const [sequence = '', number = '0'] = id.split('-');
  return [Number(sequence), Number(number)];
}
