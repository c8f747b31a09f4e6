// A part of an answer that comes in several, on its way to the courier.
import { part } from "./courier.js";

export const present = (name, component) => part(component);
