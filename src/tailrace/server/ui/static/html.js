/** Preact's parts under one name, and `html`, which escapes every value it is given. */
import { h, render, Fragment, createContext } from "preact";
import {
  useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useReducer, useContext, useErrorBoundary, useId,
} from "preact/hooks";
import htm from "htm";

export const html = htm.bind(h);
export {
  h, render, Fragment, createContext, useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useReducer,
  useContext, useErrorBoundary, useId,
};
