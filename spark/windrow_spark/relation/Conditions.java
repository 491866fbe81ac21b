package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringStartsWith;
import org.apache.spark.sql.types.Decimal;
import scala.Product;

/** Spark's filters as conditions of plans. Runs on the driver only. */
public final class Conditions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map OPERATORS = new HashMap();
    static {
        OPERATORS.put("And", "and");
        OPERATORS.put("Or", "or");
        OPERATORS.put("Not", "not");
        OPERATORS.put("IsNull", "is_null");
        OPERATORS.put("IsNotNull", "is_not_null");
        OPERATORS.put("EqualTo", "eq");
        OPERATORS.put("EqualNullSafe", "eq");
        OPERATORS.put("LessThan", "lt");
        OPERATORS.put("LessThanOrEqual", "le");
        OPERATORS.put("GreaterThan", "gt");
        OPERATORS.put("GreaterThanOrEqual", "ge");
        OPERATORS.put("In", "in");
        OPERATORS.put("StringStartsWith", "starts_with");
    }

    /** Returns a filter as a condition of plans, apart from its literals; `op` is null if unknown. */
    static ObjectNode of(Filter filter) {
        String operator = (String) OPERATORS.get(filter.getClass().getSimpleName());
        ObjectNode tree = JSON.createObjectNode().put("op", operator);
        if (operator == null) return tree;
        Product parts = (Product) filter;
        Object first = parts.productElement(0);
        if (filter instanceof Not) {
            tree.set("arg", of((Filter) first));
        } else if (filter instanceof And || filter instanceof Or) {
            ArrayNode args = tree.putArray("args");
            args.add(of((Filter) first)).add(of((Filter) parts.productElement(1)));
        } else if (filter instanceof In) {
            ArrayNode values = tree.put("column", (String) first).putArray("values");
            Object[] literals = ((In) filter).values();
            for (int i = 0; i < literals.length; i++) values.add(literal(literals[i]));
        } else if (filter instanceof EqualNullSafe) {
            Object value = ((EqualNullSafe) filter).value();
            if (value == null) return of(new IsNull((String) first));
            return of(new And(
                new IsNotNull((String) first), new EqualTo((String) first, value)));
        } else {
            tree.put("column", (String) first);
            String key = filter instanceof StringStartsWith ? "prefix" : "value";
            if (parts.productArity() > 1) tree.set(key, literal(parts.productElement(1)));
        }
        return tree;
    }

    /** Returns a value in Spark's internal form: dates as days, times as microseconds. */
    private static JsonNode literal(Object given) {
        Object value = CatalystTypeConverters.convertToCatalyst(given);
        if (value instanceof Float) value = Double.valueOf(((Float) value).doubleValue());
        else if (value instanceof Decimal) value = ((Decimal) value).toJavaBigDecimal().toPlainString();
        else if (value instanceof byte[]) value = hexadecimal((byte[]) value);
        else if (value != null && !(value instanceof Boolean) && !(value instanceof Number))
            value = value.toString();
        return JSON.valueToTree(value);
    }

    private static String hexadecimal(byte[] bytes) {
        StringBuilder digits = new StringBuilder();
        for (int i = 0; i < bytes.length; i++) {
            digits.append(Character.forDigit((bytes[i] >> 4) & 15, 16));
            digits.append(Character.forDigit(bytes[i] & 15, 16));
        }
        return digits.toString();
    }
}
