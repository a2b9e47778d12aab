'use client';

import { useEffect, useState } from 'react';
import { losses } from '../program.js';

export function Training() {
  const [found, setFound] = useState();
  useEffect(() => {
    losses().then(setFound);
  }, []);
  return found ? <p data-losses={JSON.stringify(found)}>trained</p> : <p>training</p>;
}
