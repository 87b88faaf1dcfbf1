/** In place of an owner: whoever it is. No key can be called so. */
export const anyOwner = '*';
