// Drops on the page of the demo, as the browser itself delivers them.

/**
 * Drops files or items on an element; `dragged` runs before they are dropped.
 * @param {import('@playwright/test').Page} page @param {string} selector
 * @param {object} data @param {() => unknown} [dragged]
 */
export async function drop(page, selector, data, dragged) {
  const place = page.locator(selector);
  await place.scrollIntoViewIfNeeded();
  const { x, y, width, height } = (await place.boundingBox()) ?? {
    x: 0,
    y: 0,
    width: 0,
    height: 0,
  };
  const devtools = await page.context().newCDPSession(page);
  for (const type of /** @type {const} */ (['dragEnter', 'dragOver', 'drop'])) {
    if (type === 'drop') await dragged?.();
    await devtools.send('Input.dispatchDragEvent', {
      type,
      x: x + width / 2,
      y: y + height / 2,
      data: { items: [], dragOperationsMask: 1, ...data },
    });
  }
  await devtools.detach();
}
